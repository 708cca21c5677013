//! An example beside an exported model, in ONNX's own layout: inputs, and the outputs that calmix computes for them.

use calmix_core::rng::{Domain, Seed};
use calmix_head::model::HeadModel;
use calmix_metrics::error::MetricsError;
use calmix_onnx::tensor::Tensor;

use crate::predict::prediction_rule::PredictionRule;

/// The name of the folder of the example.
pub(crate) const FOLDER: &str = "test_data_set_0";
/// The number of rows of the example.
pub(crate) const ROWS: usize = 4;

/// The inputs of an example.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ExampleInput {
    /// The pixels of images, and the side of an image.
    Images(Vec<u8>, usize),
    /// Vectors, and the length of a vector.
    Vectors(Vec<f32>, usize),
}

/// Returns the pixels of [`ROWS`] synthetic images of this side: a coloured gradient and noise.
pub(crate) fn images(side: usize) -> Vec<u8> {
    let mut pixels = Vec::with_capacity(ROWS * side * side * 3);
    for image in 0..ROWS {
        let mut stream = Seed(0).stream(Domain::Example, 0, image as u64);
        let slopes: [f64; 6] = std::array::from_fn(|_| 255.0 * stream.uniform());
        for row in 0..side {
            for column in 0..side {
                for [down, right] in [[0, 1], [2, 3], [4, 5]] {
                    let place = |n: usize| n as f64 / side as f64;
                    let level = slopes[down] * place(row) + slopes[right] * place(column);
                    let pixel = level / 2.0 + 64.0 * stream.uniform();
                    pixels.push(pixel.clamp(0.0, 255.0) as u8);
                }
            }
        }
    }
    pixels
}

/// Returns [`ROWS`] synthetic vectors around the mean that a head subtracts.
pub(crate) fn vectors(head: &HeadModel) -> Vec<f32> {
    let mean = head.projection().mean();
    let mut numbers = Vec::with_capacity(ROWS * mean.len());
    for row in 0..ROWS {
        let mut stream = Seed(0).stream(Domain::Example, 1, row as u64);
        numbers.extend(mean.iter().map(|&number| number + stream.normal() as f32));
    }
    numbers
}

/// Returns the files of an example: `input_0.pb`, and `output_0.pb` and so on in the order of the outputs of the graph.
///
/// # Errors
/// If the calibrator is for another number of classes.
pub(crate) fn files(
    input: &ExampleInput,
    logits: &[f32],
    rule: &PredictionRule,
) -> Result<Vec<(String, Vec<u8>)>, MetricsError> {
    let classes = rule.info().classes.len();
    let predictions = rule.predictions(logits, 1)?;
    let rows = predictions.len();
    let probabilities: Vec<f32> = predictions.iter().flat_map(|row| row.probabilities.clone()).collect();
    let labels: Vec<i64> = predictions.iter().map(|row| row.label.cast_signed() as i64).collect();
    let confidences: Vec<f32> = predictions.iter().map(|row| row.confidence).collect();
    let mut outputs = vec![
        Tensor::f32("logits", &[rows, classes], logits),
        Tensor::f32("probabilities", &[rows, classes], &probabilities),
        Tensor::i64("label", &[rows], &labels),
        Tensor::f32("confidence", &[rows], &confidences),
    ];
    let sets: Option<Vec<&Vec<u32>>> = predictions.iter().map(|row| row.set.as_ref()).collect();
    let abstentions: Option<Vec<bool>> = predictions.iter().map(|row| row.abstain).collect();
    if let Some((sets, abstentions)) = sets.zip(abstentions) {
        let has = |set: &[u32]| (0..).take(classes).map(|class| set.contains(&class)).collect::<Vec<bool>>();
        let members: Vec<bool> = sets.into_iter().flat_map(|set| has(set)).collect();
        outputs.push(Tensor::bool("set", &[rows, classes], &members));
        outputs.push(Tensor::bool("abstain", &[rows], &abstentions));
    }
    let input = match input {
        ExampleInput::Images(pixels, side) => Tensor::u8("images", &[rows, *side, *side, 3], pixels),
        ExampleInput::Vectors(numbers, width) => Tensor::f32("vectors", &[rows, *width], numbers),
    };
    let file = |name: String, tensor: &Tensor| (name, tensor.to_message().into_bytes());
    let mut files = vec![file("input_0.pb".to_owned(), &input)];
    files.extend(outputs.iter().enumerate().map(|(n, tensor)| file(format!("output_{n}.pb"), tensor)));
    Ok(files)
}
