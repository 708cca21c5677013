//! A network alone as the bytes of a graph: images in, logits and features out.

use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::network::layers::NetworkLayers;
use calmix_recipe::network::weights::Part;

use crate::error::OnnxError;
use crate::graph::Graph;
use crate::network::add_network;
use crate::pixels::normalised_images;
use crate::tensor::ElementType;

/// The bytes of a graph with the weights of a safetensors file: input `images` (u8, rows × side × side × 3), outputs `logits`,
/// which a backbone does not have, and `features`.
///
/// # Errors
/// If the file is not of this network.
pub fn network_graph(
    model: &ModelSpec,
    classes: usize,
    part: Part,
    file: &[u8],
) -> Result<Vec<u8>, OnnxError> {
    let (_, layout) = NetworkLayers::of(model, classes);
    let mut graph = Graph::default();
    let images = normalised_images(&mut graph, model);
    let outputs = add_network(&mut graph, model, classes, part, file, &images)?;
    if part == Part::Network {
        graph.output("logits", &outputs.logits, ElementType::F32, &[classes]);
    }
    graph.output("features", &outputs.features, ElementType::F32, &[layout.feature_width()]);
    Ok(graph.into_bytes(&[]))
}
