//! Networks as graphs: onnxruntime computes the logits that libtorch computes.

use std::fs;

use calmix_engine::predictor::Predictor;
use calmix_metrics::calibrator::Calibrator;
use calmix_onnx::model::{ModelBody, OnnxModel};
use calmix_onnx::tensor::Tensor;
use calmix_recipe::device::Device;
use calmix_testkit::network_weights::{every_family, pixels, weights};
use calmix_testkit::onnxruntime::{compare, is_near};

const CLASSES: usize = 7;
const ROWS: usize = 9;

/// Every family, both first blocks of the wide ones and both strides of the deep one, an odd side for the padding, and another
/// epsilon.
#[test]
fn every_network_computes_as_libtorch_does() {
    let folder = tempfile::tempdir().unwrap();
    for (n, model) in every_family().into_iter().enumerate() {
        let file = weights(&model, CLASSES);
        let pixels = pixels(&model, ROWS);
        let logits =
            Predictor::new(model, CLASSES, Device::Cpu, &file).unwrap().predict(&pixels).unwrap().logits;
        let graph = OnnxModel {
            reference: None,
            body: ModelBody::Network(&model, &file),
            classes: CLASSES,
            calibrator: &Calibrator::IDENTITY,
            thresholds: None,
            metadata: &[],
        };
        let place = folder.path().join(n.to_string());
        let examples = place.join("test_data_set_0");
        fs::create_dir_all(&examples).unwrap();
        fs::write(place.join("model.onnx"), graph.to_bytes().unwrap()).unwrap();
        let side = model.size as usize;
        let mut probabilities = Vec::new();
        let mut labels = Vec::new();
        let mut confidences = Vec::new();
        for row in logits.chunks_exact(CLASSES) {
            let mut p = [0.0; CLASSES];
            let label = Calibrator::IDENTITY.probabilities_into(row, &mut p).unwrap();
            labels.push(i64::try_from(label).unwrap());
            confidences.push(p[label]);
            probabilities.extend(p);
        }
        let files = [
            ("input_0.pb", Tensor::u8("images", &[ROWS, side, side, 3], &pixels)),
            ("output_0.pb", Tensor::f32("logits", &[ROWS, CLASSES], &logits)),
            ("output_1.pb", Tensor::f32("probabilities", &[ROWS, CLASSES], &probabilities)),
            ("output_2.pb", Tensor::i64("label", &[ROWS], &labels)),
            ("output_3.pb", Tensor::f32("confidence", &[ROWS], &confidences)),
        ];
        for (name, tensor) in files {
            fs::write(examples.join(name), tensor.to_message().into_bytes()).unwrap();
        }
        let found = compare(&place);
        let largest = logits.iter().fold(0.0_f32, |most, logit| most.max(logit.abs()));
        println!("{model:?}: of {largest}: {} {}", found["differences"], found["nodes"]);
        is_near(&found, "logits", 1e-5 * f64::from(largest));
        is_near(&found, "probabilities", 1e-5);
        is_near(&found, "label", 0.0);
    }
}
