//! A network with the weights of a file, or an encoder from another program: images in, logits and features out.

use std::collections::BTreeMap;

use calmix_onnx::foreign::EncoderGraph;
use calmix_onnx::network::network_graph;
use calmix_recipe::model_spec::EncoderSpec;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::network::layers::NetworkLayers;
use calmix_recipe::network::layout::Layout;
use calmix_recipe::network::weights::{self, Part};

use crate::error::OrtError;
use crate::session::{Input, OnnxSession, RunOn};

/// The maximum number of images per pass, so that their activations stay in the CPU cache.
const MAX_PASS_IMAGES: usize = 16;
/// The size in bytes below which the activations of a pass should stay, by using fewer images.
const PASS_BYTES: usize = 3 << 29;
/// The minimum number of images per pass with matrix products: ONNX Runtime multiplies a single row in another order, which
/// changes the last bits.
const MIN_ROWS: usize = 2;
/// The number of widest activations in memory at a time: input, output and shortcut of a block.
const LIVE_ACTIVATIONS: usize = 4;

#[derive(Debug)]
pub struct ImageNetwork {
    session: OnnxSession,
    side: usize,
    image_bytes: usize,
    pass_images: usize,
    feature_width: usize,
    /// The minimum number of images per pass; passes with fewer are padded.
    min_rows: usize,
}

/// The outputs of a network for images, row by row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImageOutputs {
    /// A logit for each class; empty for a backbone.
    pub logits: Vec<f32>,
    pub features: Vec<f32>,
}

impl ImageNetwork {
    /// Loads a network with its classifier from a safetensors file.
    pub fn with_classifier(
        model: &ModelSpec,
        classes: usize,
        file: &[u8],
        run_on: RunOn,
    ) -> Result<Self, OrtError> {
        let layout = layout(model, classes);
        // Check first, before memory is allocated, because the file may be untrusted.
        weights::check(&layout, file)?;
        let graph = network_graph(model, classes, Part::Network, file)?;
        Ok(Self { min_rows: MIN_ROWS, ..Self::new(model, &layout, &graph, run_on)? })
    }

    /// Loads the backbone in a safetensors file. A classifier in the file is ignored.
    pub fn backbone(model: &ModelSpec, file: &[u8], run_on: RunOn) -> Result<Self, OrtError> {
        // A tensor is allocated only if the file contains it in this shape, so the size of the file limits the memory.
        let graph = network_graph(model, 1, Part::Backbone, file)?;
        Self::new(model, &layout(model, 1), &graph, run_on)
    }

    /// Builds the session, which has its own copy of the weights.
    fn new(model: &ModelSpec, layout: &Layout, graph: &[u8], run_on: RunOn) -> Result<Self, OrtError> {
        Ok(Self {
            session: OnnxSession::new(graph, run_on)?,
            side: model.size as usize,
            image_bytes: model.image_bytes(),
            pass_images: pass_images(model),
            feature_width: layout.feature_width(),
            min_rows: 1,
        })
    }

    /// Builds the session of an encoder's graph, and runs it once to find the number of features.
    pub fn encoder(spec: &EncoderSpec, graph: &EncoderGraph, run_on: RunOn) -> Result<Self, OrtError> {
        let mut encoder = Self {
            session: OnnxSession::new(&graph.bytes, run_on)?,
            side: spec.size as usize,
            image_bytes: spec.image_bytes(),
            pass_images: graph.rows.unwrap_or(MAX_PASS_IMAGES),
            feature_width: 0,
            // A graph for a fixed number of images runs on no other number.
            min_rows: graph.rows.unwrap_or(MIN_ROWS),
        };
        let found = encoder.outputs(&vec![0; encoder.image_bytes])?.features;
        if found.is_empty() || graph.width.is_some_and(|declared| declared != found.len()) {
            let declared = graph.width.map_or_else(|| "any number of".to_owned(), |width| width.to_string());
            let problem =
                format!("the encoder declares {declared} features per image and has {}", found.len());
            return Err(OrtError::Model(problem));
        }
        encoder.feature_width = found.len();
        Ok(encoder)
    }

    /// Returns the maximum size in bytes of a file with the network's weights, without its metadata.
    pub fn max_weights_bytes(model: &ModelSpec, classes: usize) -> u64 {
        weights::max_bytes(&layout(model, classes))
    }

    /// Returns the maximum size in bytes of a file with the network's backbone and any classifier.
    pub fn max_backbone_bytes(model: &ModelSpec) -> u64 {
        weights::max_backbone_bytes(&layout(model, 1))
    }

    /// Returns the number of features per image of a network.
    pub fn width_of(model: &ModelSpec) -> usize {
        layout(model, 1).feature_width()
    }

    pub fn feature_width(&self) -> usize {
        self.feature_width
    }

    /// Returns the size in bytes of the pixels of a pass. Longer inputs are not faster per image.
    pub fn pass_bytes(&self) -> usize {
        self.pass_images.saturating_mul(self.image_bytes)
    }

    /// Runs any number of images (u8, rows × side × side × 3). The outputs of an image do not depend on the others.
    pub fn outputs(&self, pixels: &[u8]) -> Result<ImageOutputs, OrtError> {
        if self.image_bytes == 0 || !pixels.len().is_multiple_of(self.image_bytes) {
            return Err(OrtError::Input {
                what: "bytes of pixels",
                length: pixels.len(),
                row: self.image_bytes,
            });
        }
        let mut outputs = ImageOutputs::default();
        for pass in pixels.chunks(self.pass_bytes()) {
            let mut found = self.run(pass)?;
            outputs.logits.extend(found.remove("logits").unwrap_or_default());
            outputs.features.extend(found.remove("features").unwrap_or_default());
        }
        Ok(outputs)
    }

    fn run(&self, pixels: &[u8]) -> Result<BTreeMap<String, Vec<f32>>, OrtError> {
        let images = pixels.len() / self.image_bytes.max(1);
        let rows = self.min_rows;
        if images >= rows {
            return self.session.run(Input::Images { pixels, side: self.side });
        }
        let mut filled = pixels.to_vec();
        filled.resize(rows * self.image_bytes, 0);
        let mut found = self.session.run(Input::Images { pixels: &filled, side: self.side })?;
        for numbers in found.values_mut() {
            numbers.truncate(numbers.len() / rows * images);
        }
        Ok(found)
    }
}

/// Returns the number of images per pass: fewer if images are large.
fn pass_images(model: &ModelSpec) -> usize {
    let pixels = model.image_bytes() / 3;
    let numbers = pixels.saturating_mul(model.network.channels_per_pixel());
    let bytes = numbers.saturating_mul(LIVE_ACTIVATIONS * size_of::<f32>());
    (PASS_BYTES / bytes.max(1)).clamp(1, MAX_PASS_IMAGES)
}

fn layout(model: &ModelSpec, classes: usize) -> Layout {
    let (_, layout) = NetworkLayers::of(model, classes);
    layout
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_images_are_fewer_per_pass() {
        let images = |name: &str, size| pass_images(&ModelSpec::new(name.parse().unwrap(), size));
        assert_eq!(images("wrn-28-2", 32), MAX_PASS_IMAGES);
        assert_eq!(images("resnet50", 224), MAX_PASS_IMAGES);
        assert!((1..MAX_PASS_IMAGES).contains(&images("resnet50", 2_048)));
        assert_eq!(images("resnet50", 60_000), 1);
    }
}
