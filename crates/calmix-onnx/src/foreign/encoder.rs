//! A foreign model as an encoder in calmix's form: images in, features out, all weights in one file.

use calmix_recipe::model_spec::EncoderSpec;
use calmix_recipe::network::Pooling;

use super::ForeignModel;
use super::encoder_file::{EncoderFile, FEATURES, PREFIX};
use super::feature_output::FeatureOutput;
use super::image_input::ImageInput;
use super::problem::ForeignProblem;
use crate::graph::{Attribute, Graph, GraphForm, Renaming, Value};
use crate::pixels::Pixels;
use crate::tensor::{ElementType, Tensor};

/// The prefix of the names that calmix adds.
const ADDED_PREFIX: &str = "encoder/calmix/";
/// The same prefix, without the prefix of all names in an encoder.
const ADDED_NAMES: &str = "calmix/";
/// The maximum side of an image, whose numbers are a third of those that a tensor may have.
const MAX_SIDE: u32 = 8_192;
/// The maximum size of a file that other programs can read.
const MAX_FILE_BYTES: usize = i32::MAX as usize;

/// An encoder as the bytes of a graph, with input `images` (u8, rows × side × side × 3) and output `features` (f32, rows ×
/// width).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncoderGraph {
    pub bytes: Vec<u8>,
    /// The number of images per batch; `None` for any.
    pub rows: Option<usize>,
    /// The length of a feature vector; `None` if only a run can find it.
    pub width: Option<usize>,
}

impl ForeignModel<'_> {
    /// Turns the model into a graph that calmix runs. Its number of rows is that of the model's [`ImageInput`].
    ///
    /// # Errors
    /// If the model has no such output, takes images of another size, or the file would be too large.
    pub fn encoder(&self, spec: &EncoderSpec) -> Result<EncoderGraph, ForeignProblem> {
        let input = self.image_input()?;
        let output = self.choose_output(Some(&spec.output), Some(spec.pooling))?;
        self.check(spec, &input)?;
        let mut graph = Graph::new(GraphForm {
            opset: self.opset,
            ir_version: self.ir_version,
            rows: input.rows,
            prefix: ADDED_PREFIX,
        });
        let EncoderSpec { size: side, mean, std, .. } = *spec;
        let images = Pixels { side, mean, std, layout: input.layout }.add(&mut graph);
        let images = match input.element {
            ElementType::F16 => graph.cast(&images, ElementType::F16),
            _ => images,
        };
        let renaming =
            Renaming { prefix: PREFIX, input: Some((input.name.clone(), images.name().to_owned())) };
        let found = Value::of_included(renaming.apply(&output.name));
        graph.include(self, renaming);
        let features = pooled(&mut graph, &output, &found);
        graph.output_vectors(FEATURES, &features, ElementType::F32, output.width);
        let bytes = graph.into_bytes(&[]);
        if bytes.len() > MAX_FILE_BYTES {
            return Err(ForeignProblem::TooLarge { max: MAX_FILE_BYTES as u64 });
        }
        // Check that the result can be read: a name may be too long with its prefix.
        EncoderFile::read(&bytes)?;
        Ok(EncoderGraph { bytes, rows: input.rows, width: output.width })
    }

    fn check(&self, spec: &EncoderSpec, input: &ImageInput) -> Result<(), ForeignProblem> {
        let side = spec.size;
        if let Some(declared) = input.side.filter(|&declared| declared != (side, side)) {
            return Err(ForeignProblem::Side { input: input.name.clone(), declared, side });
        }
        if side == 0 || side > MAX_SIDE {
            return Err(ForeignProblem::Pixels(format!(
                "an encoder takes images of 1 to {MAX_SIDE} pixels per side, not {side}. Set augment.size"
            )));
        }
        // Check the values in f32, in which the graph computes.
        let is_valid = |channel: usize| {
            let scale = (1.0 / (255.0 * spec.std[channel])) as f32;
            let shift = (spec.mean[channel] / spec.std[channel]) as f32;
            spec.std[channel] > 0.0 && scale.is_finite() && shift.is_finite()
        };
        if ![0, 1, 2].into_iter().all(is_valid) {
            let problem = "the mean or the deviation of a channel is not one that pixels between 0 and 1 can have. Set dataset.mean and dataset.std";
            return Err(ForeignProblem::Pixels(problem.to_owned()));
        }
        let values = self.nodes.iter().flat_map(|node| &node.outputs).copied();
        let mut values = values.chain(self.initialisers.iter().map(|tensor| tensor.name));
        match values.find(|name| name.starts_with(ADDED_NAMES)) {
            Some(name) => Err(ForeignProblem::DuplicateName { name: name.to_owned() }),
            None => Ok(()),
        }
    }
}

/// Adds the pooling of an output to one vector per image, (rows, width) in f32.
fn pooled(graph: &mut Graph, output: &FeatureOutput, x: &Value) -> Value {
    match output.pooling {
        Pooling::Vector => in_f32(graph, output, x),
        Pooling::ClassToken => {
            let first = graph.constant(Tensor::i64("class.token", &[], &[0]));
            let token = graph.node_with("Gather", &[x, &first], vec![("axis", Attribute::Int(1))]);
            in_f32(graph, output, &token)
        }
        // Convert to f32 before the sum: in half precision, many tokens would lose digits.
        Pooling::MeanOfTokens => {
            let x = in_f32(graph, output, x);
            graph.reduce("ReduceMean", &x, &[1], false)
        }
        Pooling::MeanOfMap => {
            let x = in_f32(graph, output, x);
            graph.reduce("ReduceMean", &x, &[2, 3], false)
        }
    }
}

fn in_f32(graph: &mut Graph, output: &FeatureOutput, x: &Value) -> Value {
    match output.element {
        ElementType::F32 => x.clone(),
        _ => graph.cast(x, ElementType::F32),
    }
}
