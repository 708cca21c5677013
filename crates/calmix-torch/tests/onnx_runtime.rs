//! Networks on ONNX Runtime compute what libtorch computes in f32.

use std::time::Instant;

use calmix_engine::predictor::Predictor;
use calmix_metrics::calibrator::Calibrator;
use calmix_ort::image_network::ImageNetwork;
use calmix_ort::session::RunOn;
use calmix_recipe::device::Device;
use calmix_recipe::model_spec::ModelSpec;
use calmix_testkit::network_weights::{every_family, pixels, spec, weights};

const CLASSES: usize = 7;

fn by_libtorch(model: ModelSpec, file: &[u8]) -> Predictor {
    Predictor::new(model, CLASSES, Device::Cpu, file).unwrap()
}

fn by_onnx_runtime(model: &ModelSpec, file: &[u8], threads: usize) -> ImageNetwork {
    ImageNetwork::with_classifier(model, CLASSES, file, RunOn { threads, device: Device::Cpu }).unwrap()
}

/// The largest difference of two lists of numbers, relative to the largest number.
fn largest_difference(found: &[f32], wanted: &[f32]) -> f32 {
    assert_eq!(found.len(), wanted.len());
    let largest = wanted.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
    let differences = found.iter().zip(wanted).map(|(found, wanted)| (found - wanted).abs());
    differences.fold(0.0, f32::max) / largest
}

#[test]
fn every_family_computes_as_libtorch_does() {
    for model in every_family() {
        let file = weights(&model, CLASSES);
        let pixels = pixels(&model, 9);
        let wanted = by_libtorch(model, &file).predict(&pixels).unwrap();
        let found = by_onnx_runtime(&model, &file, 1).outputs(&pixels).unwrap();
        let logits = largest_difference(&found.logits, &wanted.logits);
        let features = largest_difference(&found.features, &wanted.features);
        println!("{model:?}: logits {logits:e}, features {features:e}");
        assert!(logits <= 1e-5, "{}: logits differ by {logits}", model.network);
        // Random weights amplify the last bit more than trained ones, most of all in the deepest network.
        assert!(features <= 2e-5, "{}: features differ by {features}", model.network);
    }
}

#[test]
fn probabilities_of_a_thousand_images_are_those_of_libtorch() {
    let model = spec("wrn-10-2", 32);
    let file = weights(&model, CLASSES);
    let pixels = pixels(&model, 1_000);
    let wanted = by_libtorch(model, &file).predict(&pixels).unwrap().logits;
    let found = by_onnx_runtime(&model, &file, 2).outputs(&pixels).unwrap().logits;
    let mut largest = 0.0_f32;
    for (found, wanted) in found.chunks_exact(CLASSES).zip(wanted.chunks_exact(CLASSES)) {
        let mut p = [0.0; CLASSES];
        let mut q = [0.0; CLASSES];
        Calibrator::IDENTITY.probabilities_into(found, &mut p).unwrap();
        Calibrator::IDENTITY.probabilities_into(wanted, &mut q).unwrap();
        largest = p.iter().zip(q).fold(largest, |most, (p, q)| most.max((p - q).abs()));
    }
    println!("largest difference of a probability: {largest:e}");
    assert!(largest <= 1e-5, "{largest}");
}

/// Prints images per second of both, in turns. On an idle machine: `OMP_NUM_THREADS=N CALMIX_THREADS=N cargo nextest run
/// -p calmix-torch onnx_runtime --run-ignored only --no-capture`.
#[test]
#[ignore = "measures, and asserts nothing"]
fn speed_beside_libtorch() {
    const TURNS: usize = 7;
    /// The rows of a pass of libtorch, which fills up the last one.
    const IMAGES: usize = 64;
    let threads = std::env::var("CALMIX_THREADS").map_or(1, |threads| threads.parse().unwrap());
    println!("| network | libtorch, images/s | ONNX Runtime, images/s | ratio |\n|---|---|---|---|");
    let networks =
        [("tf_efficientnet_lite0", 160), ("tf_efficientnet_lite2", 224), ("resnet50", 224), ("wrn-28-2", 32)];
    for (name, side) in networks {
        let model = spec(name, side);
        let file = weights(&model, CLASSES);
        let pixels = pixels(&model, IMAGES);
        let libtorch = by_libtorch(model, &file);
        let onnx_runtime = by_onnx_runtime(&model, &file, threads);
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        for _ in 0..TURNS {
            let start = Instant::now();
            libtorch.predict(&pixels).unwrap();
            theirs.push(start.elapsed().as_secs_f64());
            let start = Instant::now();
            onnx_runtime.outputs(&pixels).unwrap();
            ours.push(start.elapsed().as_secs_f64());
        }
        let median = |times: &mut Vec<f64>| {
            times.sort_by(f64::total_cmp);
            IMAGES as f64 / times[times.len() / 2]
        };
        let theirs = median(&mut theirs);
        let ours = median(&mut ours);
        println!("| {name} at {side}, {threads} threads | {theirs:.1} | {ours:.1} | {:.2} |", ours / theirs);
    }
}
