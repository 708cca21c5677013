//! A head on vectors as nodes: centring, unit length of each set of features, principal directions, layers.

use calmix_head::model::HeadModel;
use calmix_head::projection::{MIN_LENGTH, Projection};
use calmix_metrics::shift::ReferenceFeatures;

use crate::graph::{Attribute, Graph, Value};
use crate::network::affine;
use crate::tensor::{ElementType, Tensor};

/// Adds the rounding to half precision that a backbone's features go through before a head reads them.
pub fn rounded(graph: &mut Graph, features: &Value) -> Value {
    let halved = graph.cast(features, ElementType::F16);
    graph.cast(&halved, ElementType::F32)
}

/// Adds the projection and the layers of a head. Returns the logits. With a reference, the features that it has are an output too.
pub fn add_head(
    graph: &mut Graph,
    model: &HeadModel,
    vectors: &Value,
    reference: Option<&ReferenceFeatures>,
) -> Value {
    let projection = model.projection();
    let width = projection.width();
    let mean = graph.constant(Tensor::f32("features.mean", &[width], projection.mean()));
    let centred = graph.node("Sub", &[vectors, &mean]);
    let mut x = of_unit_length(graph, projection, &centred);
    if !projection.rotation().is_empty() {
        // Transpose here, so that the runtime does not have to.
        let dimensions = projection.dimensions();
        let rotation = projection.rotation();
        let mut columns = Vec::with_capacity(rotation.len());
        for feature in 0..width {
            columns.extend((0..dimensions).map(|direction| rotation[direction * width + feature]));
        }
        let rotation = graph.constant(Tensor::f32("features.rotation", &[width, dimensions], &columns));
        x = graph.node("MatMul", &[&x, &rotation]);
    }
    if let Some(reference) = reference {
        add_reference_features(graph, &x, projection.dimensions(), reference);
    }
    let head = model.head();
    let parameters = head.shape().parameters();
    let values: Vec<Value> = parameters
        .into_iter()
        .map(|parameter| {
            let numbers = head.numbers().get(parameter.range).unwrap_or_default();
            graph.constant(Tensor::f32(format!("head.{}", parameter.name), &parameter.shape, numbers))
        })
        .collect();
    let layers = values.len() / 2;
    for (n, layer) in values.chunks_exact(2).enumerate() {
        x = affine(graph, &x, &layer[0], &layer[1]);
        if n + 1 < layers {
            x = graph.node("Relu", &[&x]);
        }
    }
    x
}

/// Adds the output `reference_features`: what a row is compared with the reference of the model by.
fn add_reference_features(graph: &mut Graph, projected: &Value, width: usize, reference: &ReferenceFeatures) {
    let dimensions = reference.dimensions;
    let features = if reference.directions.is_empty() {
        let numbers = |name: &str, number: i64| Tensor::i64(format!("reference.{name}"), &[1], &[number]);
        let start = graph.constant(numbers("start", 0));
        let end = graph.constant(numbers("end", i64::try_from(dimensions).unwrap_or(i64::MAX)));
        let axis = graph.constant(numbers("axis", 1));
        graph.node("Slice", &[projected, &start, &end, &axis])
    } else {
        let mut columns = Vec::with_capacity(reference.directions.len());
        for feature in 0..width {
            columns
                .extend((0..dimensions).map(|direction| reference.directions[direction * width + feature]));
        }
        let directions = graph.constant(Tensor::f32("reference.directions", &[width, dimensions], &columns));
        graph.node("MatMul", &[projected, &directions])
    };
    graph.output("reference_features", &features, ElementType::F32, &[dimensions]);
}

/// Scales each set of features of centred vectors to the same length, and a vector of all to unit length.
fn of_unit_length(graph: &mut Graph, projection: &Projection, centred: &Value) -> Value {
    let [_, _, ..] = projection.sets() else { return normalised(graph, centred) };
    let axis = graph.constant(Tensor::i64("features.axis", &[1], &[1]));
    let mut parts = Vec::new();
    let mut start = 0;
    for set in projection.sets() {
        let bound = |graph: &mut Graph, place: usize| {
            graph.constant(Tensor::i64(
                format!("features.place.{place}"),
                &[1],
                &[i64::try_from(place).unwrap_or(i64::MAX)],
            ))
        };
        let from = bound(graph, start);
        start += set;
        let to = bound(graph, start);
        let part = graph.node("Slice", &[centred, &from, &to, &axis]);
        parts.push(normalised(graph, &part));
    }
    let parts: Vec<&Value> = parts.iter().collect();
    let joined = graph.node_with("Concat", &parts, vec![("axis", Attribute::Int(1))]);
    let scale = graph.constant(Tensor::f32("features.set_scale", &[], &[projection.set_scale()]));
    graph.node("Mul", &[&joined, &scale])
}

/// Divides vectors by their length.
fn normalised(graph: &mut Graph, centred: &Value) -> Value {
    // Divide by the largest number first: the squares of a long vector overflow f32. The length is then at least one, unless the
    // vector is shorter than `MIN_LENGTH`, by which it was then divided.
    let sizes = graph.node("Abs", &[centred]);
    let largest = graph.reduce("ReduceMax", &sizes, &[1], true);
    let shortest = graph.constant(Tensor::f32("features.shortest", &[], &[MIN_LENGTH]));
    let largest = graph.node("Max", &[&largest, &shortest]);
    let scaled = graph.node("Div", &[centred, &largest]);
    let length = graph.reduce("ReduceL2", &scaled, &[1], true);
    let one = graph.constant(Tensor::f32("features.one", &[], &[1.0]));
    let length = graph.node("Max", &[&length, &one]);
    graph.node("Div", &[&scaled, &length])
}
