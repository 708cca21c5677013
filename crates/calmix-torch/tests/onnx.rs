//! Networks as graphs: onnxruntime computes the logits that libtorch computes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "../../calmix-onnx/tests/runtime/onnxruntime.rs"]
mod onnxruntime;
#[path = "../../calmix-core/tests/tier/python.rs"]
mod python;

use std::fs;

use calmix_core::rng::{Domain, Seed, Stream};
use calmix_engine::predictor::{Predictor, PredictorSettings};
use calmix_metrics::calibrator::any_calibrator::Calibrator;
use calmix_onnx::model::{ModelBody, OnnxModel};
use calmix_onnx::tensor::Tensor;
use calmix_recipe::device::Device;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::network::layout::{Init, Layout};
use calmix_recipe::network::weights::statistics_names;
use calmix_recipe::network::{BottleneckStride, FirstBlock};
use onnxruntime::{compare, is_near};
use safetensors::tensor::{Dtype, TensorView};

const CLASSES: usize = 7;
const ROWS: usize = 9;

/// Weights as at the start of a training, but with statistics, scales and biases that a training would leave.
fn weights(layout: &Layout) -> Vec<u8> {
    let mut stream = Seed(5).stream(Domain::Init, 0, 0);
    let mut tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
    let mut add = |name: &str, shape: &[usize], draw: &mut dyn FnMut(&mut Stream) -> f64| {
        let numbers = (0..shape.iter().product()).flat_map(|_| (draw(&mut stream) as f32).to_le_bytes());
        tensors.push((name.to_owned(), Dtype::F32, shape.to_vec(), numbers.collect()));
    };
    for parameter in &layout.parameters {
        match parameter.init {
            Init::Normal(deviation) => {
                add(&parameter.name, &parameter.shape, &mut |stream| deviation * stream.normal());
            }
            Init::Constant(value) => {
                let value = f64::from(value);
                add(&parameter.name, &parameter.shape, &mut |stream| value + 0.2 * stream.normal());
            }
        }
    }
    for layer in &layout.statistics {
        let [mean, variance, _] = statistics_names(&layer.name);
        add(&mean, &[layer.channels], &mut |stream| 0.3 * stream.normal());
        add(&variance, &[layer.channels], &mut |stream| 0.5 + stream.uniform());
    }
    for layer in &layout.statistics {
        let [_, _, tracked] = statistics_names(&layer.name);
        tensors.push((tracked, Dtype::I64, Vec::new(), 3_i64.to_le_bytes().to_vec()));
    }
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| (name, TensorView::new(*dtype, shape.clone(), bytes).unwrap()));
    safetensors::serialize(views, None).unwrap()
}

/// Every family, both first blocks of the wide ones and both strides of the deep one, an odd side for the padding, and another
/// epsilon.
#[test]
fn every_network_computes_as_libtorch_does() {
    let spec =
        |name: &str, size| ModelSpec { mean: [0.4, 0.5, 0.6], ..ModelSpec::new(name.parse().unwrap(), size) };
    let models = [
        spec("wrn-10-1", 32),
        ModelSpec { block: FirstBlock::Torch, ..spec("wrn-16-2", 32) },
        ModelSpec { norm_eps: Some(0.1), ..spec("wrn-13-1", 48) },
        spec("resnet50", 64),
        ModelSpec { stride: BottleneckStride::First, ..spec("resnet50", 33) },
        spec("tf_efficientnet_lite0", 65),
        spec("tf_efficientnet_lite2", 64),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (n, model) in models.into_iter().enumerate() {
        let layout = Layout::of_network(model.network, model.block, CLASSES);
        let file = weights(&layout);
        let mut stream = Seed(6).stream(Domain::Init, 0, 0);
        let pixels: Vec<u8> =
            (0..ROWS * model.image_bytes()).map(|_| (256.0 * stream.uniform()) as u8).collect();
        let settings = PredictorSettings { model, classes: CLASSES, device: Device::Cpu };
        let logits = Predictor::new(&settings, &file).unwrap().predict(&pixels).unwrap().logits;
        let graph = OnnxModel {
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
