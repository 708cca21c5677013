//! A calibrated model as the bytes of an ONNX file.

use calmix_head::model::HeadModel;
use calmix_metrics::calibrator::Calibrator;
use calmix_metrics::shift::ReferenceFeatures;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::network::weights::Part;

use crate::decision::{Thresholds, add_decision};
use crate::error::OnnxError;
use crate::foreign::encoder_file::EncoderFile;
use crate::graph::Graph;
use crate::head::{add_head, rounded};
use crate::network::add_network;
use crate::pixels::normalised_images;
use crate::tensor::ElementType;

/// The part of a model between input and logits.
#[derive(Debug, Clone, Copy)]
pub enum ModelBody<'a> {
    /// A network that was trained as a whole, and the safetensors file with its weights.
    Network(&'a ModelSpec, &'a [u8]),
    /// A head on a frozen backbone, and the safetensors file with the weights of the backbone.
    HeadOnBackbone(&'a ModelSpec, &'a [u8], &'a HeadModel),
    /// A head on an encoder of images, and the file that [`ForeignModel::encoder`] wrote.
    ///
    /// [`ForeignModel::encoder`]: crate::foreign::ForeignModel::encoder
    HeadOnEncoder(&'a [u8], &'a HeadModel),
    /// A head on the user's own vectors.
    HeadOnVectors(&'a HeadModel),
}

#[derive(Debug, Clone, Copy)]
pub struct OnnxModel<'a> {
    pub body: ModelBody<'a>,
    pub classes: usize,
    pub calibrator: &'a Calibrator,
    /// The thresholds of prediction sets and abstention; `None` without held-out labels.
    pub thresholds: Option<&'a Thresholds>,
    /// The features that new samples are compared with, which are an output then; `None` without a reference.
    pub reference: Option<&'a ReferenceFeatures>,
    pub metadata: &'a [(String, String)],
}

impl OnnxModel<'_> {
    /// Returns the bytes of `model.onnx`.
    ///
    /// # Errors
    /// If the weights are not of the network, or the parts of the model contradict each other.
    pub fn to_bytes(&self) -> Result<Vec<u8>, OnnxError> {
        self.check()?;
        let encoder = match self.body {
            ModelBody::HeadOnEncoder(file, _) => Some(EncoderFile::read(file)?),
            _ => None,
        };
        let mut graph = encoder.as_ref().map_or_else(Graph::default, EncoderFile::new_graph);
        let logits = match self.body {
            ModelBody::Network(model, file) => {
                let images = normalised_images(&mut graph, model);
                add_network(&mut graph, model, self.classes, Part::Network, file, &images)?.logits
            }
            ModelBody::HeadOnBackbone(model, file, head) => {
                let images = normalised_images(&mut graph, model);
                let features = add_network(&mut graph, model, 1, Part::Backbone, file, &images)?.features;
                let features = rounded(&mut graph, &features);
                add_head(&mut graph, head, &features, self.reference)
            }
            ModelBody::HeadOnEncoder(_, head) => {
                let Some(encoder) = &encoder else {
                    return Err(OnnxError::Model("it has no encoder".into()));
                };
                let width = head.projection().width();
                if let Some(found) = encoder.width().filter(|&found| found != width) {
                    return Err(OnnxError::Model(format!(
                        "the head reads {width} features, but the encoder gives {found}; fit the head again"
                    )));
                }
                let features = encoder.add(&mut graph);
                let features = rounded(&mut graph, &features);
                add_head(&mut graph, head, &features, self.reference)
            }
            ModelBody::HeadOnVectors(head) => {
                let vectors = graph.input("vectors", ElementType::F32, &[head.projection().width()]);
                add_head(&mut graph, head, &vectors, self.reference)
            }
        };
        add_decision(&mut graph, self.calibrator, self.thresholds, &logits, self.classes);
        Ok(graph.into_bytes(self.metadata))
    }

    fn check(&self) -> Result<(), OnnxError> {
        let classes = self.classes;
        let outputs = match self.body {
            ModelBody::Network(..) => classes,
            ModelBody::HeadOnBackbone(_, _, head)
            | ModelBody::HeadOnEncoder(_, head)
            | ModelBody::HeadOnVectors(head) => head.head().shape().classes,
        };
        let of_calibrator = match self.calibrator {
            Calibrator::Vector(map) => map.scale().len(),
            Calibrator::Temperature { .. } | Calibrator::Isotonic(_) => classes,
        };
        let of_sets = self.thresholds.map_or(classes, |thresholds| thresholds.sets.len());
        for (what, found) in [("head", outputs), ("calibrator", of_calibrator), ("prediction sets", of_sets)]
        {
            if found != classes {
                return Err(OnnxError::Model(format!(
                    "{classes} classes, but the {what} of the model have {found}"
                )));
            }
        }
        if classes < 2 {
            return Err(OnnxError::Model(format!(
                "a model needs two classes or more, and this one has {classes}"
            )));
        }
        Ok(())
    }
}
