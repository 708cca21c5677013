//! The parts of a model, read from the files of its run: weights, backbone, head.

use std::path::PathBuf;

use calmix_head::model::HeadModel;
use calmix_io::error::{FileError, FileProblem};
use calmix_onnx::foreign::EncoderGraph;
use calmix_onnx::model::ModelBody;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::network::layout::Layout;
use calmix_recipe::network::weights;
use calmix_run::run::RunFile;
use calmix_run::tensor_files::head_files::{max_head_bytes, max_projection_bytes};

use crate::model::files::ModelFiles;

/// The parts of a model.
#[derive(Debug)]
pub(crate) enum ModelParts {
    /// A network that was trained as a whole, and the bytes of its `model.safetensors`.
    Network(ModelSpec, Vec<u8>),
    /// A head, its backbone, and the bytes of `backbone.safetensors`.
    HeadOnBackbone(ModelSpec, Vec<u8>, HeadModel),
    /// A head, the bytes of its `backbone.onnx`, and the graph of that encoder.
    HeadOnEncoder(Vec<u8>, EncoderGraph, HeadModel),
    /// A head on the user's own vectors.
    HeadOnVectors(HeadModel),
}

impl ModelParts {
    /// Reads the parts of a model, and checks them against `model.json`.
    pub(crate) fn read(files: &ModelFiles) -> Result<Self, FileError> {
        let info = files.info();
        let Some(spec) = info.model else {
            if let Some((head, spec)) =
                info.head.as_ref().and_then(|head| Some((head, head.encoder.as_ref()?)))
            {
                let file = files.encoder(head)?;
                let graph = file.graph(spec)?;
                let model = files.head(head, head.features as usize)?;
                return Ok(Self::HeadOnEncoder(file.bytes().to_vec(), graph, model));
            }
            let Some(head) = info.head.as_ref().filter(|_| info.reads_vectors()) else {
                return Err(files.wrong("neither a network nor a head on vectors".to_owned()));
            };
            return Ok(Self::HeadOnVectors(files.head_on_vectors(head)?));
        };
        let Some(head) = &info.head else {
            let layout = Layout::of_network(spec.network, spec.block, info.classes.len());
            let weights = files.weights(weights::max_bytes(&layout))?;
            let path = files.path(RunFile::Model)?;
            let wrong = |problem: weights::WeightsProblem| {
                FileError::new(&path, FileProblem::Format(problem.to_string()))
            };
            weights::check(&layout, &weights).map_err(wrong)?;
            return Ok(Self::Network(spec, weights));
        };
        let layout = Layout::of_network(spec.network, spec.block, 1);
        let longest = weights::max_backbone_bytes(&layout);
        let backbone = files.below_head(RunFile::Backbone, longest, &head.backbone)?;
        let head = files.head(head, layout.feature_width())?;
        Ok(Self::HeadOnBackbone(spec, backbone, head))
    }

    /// Returns the run's files with weights, by name.
    pub(crate) fn weight_files(&self, files: &ModelFiles) -> Result<Vec<(PathBuf, Vec<u8>)>, FileError> {
        let info = files.info();
        let mut copies = Vec::new();
        let mut add = |name: &str, bytes: Vec<u8>| copies.push((PathBuf::from(name), bytes));
        match (self, &info.head) {
            (Self::Network(_, weights), _) => add("model.safetensors", weights.clone()),
            (_, None) => {}
            (_, Some(head)) => {
                let shape = head.shape(info.classes.len());
                add("model.safetensors", files.weights(max_head_bytes(shape))?);
                let longest = max_projection_bytes(head.features as usize);
                add(
                    "projection.safetensors",
                    files.below_head(RunFile::Projection, longest, &head.projection)?,
                );
            }
        }
        match self {
            Self::HeadOnBackbone(_, backbone, _) => add("backbone.safetensors", backbone.clone()),
            Self::HeadOnEncoder(encoder, ..) => add("backbone.onnx", encoder.clone()),
            Self::Network(..) | Self::HeadOnVectors(_) => {}
        }
        Ok(copies)
    }

    /// Returns the body of the graph.
    pub(super) fn body(&self) -> ModelBody<'_> {
        match self {
            Self::Network(spec, weights) => ModelBody::Network(spec, weights),
            Self::HeadOnBackbone(spec, backbone, head) => ModelBody::HeadOnBackbone(spec, backbone, head),
            Self::HeadOnEncoder(_, graph, head) => ModelBody::HeadOnEncoder(&graph.bytes, head),
            Self::HeadOnVectors(head) => ModelBody::HeadOnVectors(head),
        }
    }
}
