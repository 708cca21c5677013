//! Models that the package `onnx` made: onnxruntime computes the same features by calmix's encoder as by the original.

use std::path::Path;
use std::{env, fs};

use calmix_core::matrix::Matrix;
use calmix_core::rng::{Domain, Seed};
use calmix_head::model::HeadModel;
use calmix_head::network::{Head, HeadShape};
use calmix_head::projection::Projection;
use calmix_metrics::calibrator::{Calibrator, CalibratorKind};
use calmix_onnx::decision::Thresholds;
use calmix_onnx::foreign::ForeignModel;
use calmix_onnx::foreign::encoder_file::EncoderFile;
use calmix_onnx::model::{ModelBody, OnnxModel};
use calmix_onnx::tensor::Tensor;
use calmix_recipe::model_spec::EncoderSpec;
use calmix_recipe::network::Pooling;
use calmix_testkit::onnxruntime::{compare, is_near, run};
use calmix_testkit::{python, tier};

const SIDE: usize = 16;
const ROWS: usize = 9;
const CLASSES: usize = 5;

/// Writes the encoder of a model beside it, and returns the names of the files that it read.
fn encode(
    folder: &Path,
    model: &str,
    encoder: &str,
    requested: Option<&str>,
    pooling: Option<Pooling>,
) -> Vec<String> {
    let bytes = fs::read(folder.join(format!("{model}.onnx"))).unwrap();
    let mut reads = Vec::new();
    let foreign = ForeignModel::read(&bytes, &mut |name| {
        reads.push(name.to_owned());
        fs::read(folder.join(name)).map_err(|error| error.to_string())
    })
    .unwrap();
    let output = foreign.choose_output(requested, pooling).unwrap();
    let mean = [0.485, 0.456, 0.406];
    let std = [0.229, 0.224, 0.225];
    let spec = EncoderSpec { size: SIDE as u32, mean, std, output: output.name, pooling: output.pooling };
    let graph = foreign.encoder(&spec).unwrap();
    // The same graph comes from the model with its weights in one piece.
    let whole = foreign.self_contained(&bytes);
    let again =
        ForeignModel::read(&whole, &mut |name| Err(format!("{name} is not needed any more"))).unwrap();
    assert_eq!(again.encoder(&spec).unwrap(), graph);
    fs::write(folder.join(format!("{encoder}.encoder.onnx")), graph.bytes).unwrap();
    reads
}

/// A model with its weights in a second file and axes as an input of reductions, one with the channels last and a fixed batch, and
/// one in half precision. A head on the first computes as the library does.
#[test]
fn encoders_compute_as_their_originals() {
    if python::environment("onnx").is_none() && env::var_os("CALMIX_ONNX_PYTHON").is_none() {
        return tier::skipped("there is no Python environment with onnx; `cargo xtask setup` creates it");
    }
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runtime/foreign.py");
    let make = python::interpreter("onnx", "CALMIX_ONNX_PYTHON");
    let made = std::process::Command::new(make).arg(&script).arg("make").arg(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let place = folder.path();
    let reads = encode(place, "nchw", "nchw", Some("map"), None);
    assert_eq!(reads, ["nchw.onnx_data"]);
    encode(place, "nhwc", "nhwc", None, None);
    encode(place, "tokens", "tokens", None, Some(Pooling::ClassToken));
    encode(place, "tokens", "mean", None, Some(Pooling::MeanOfTokens));
    for name in ["nchw", "nhwc", "tokens"] {
        write_head(place, name);
    }
    // The original has its weights in the other file, the encoder does not.
    let found = run(&script, &[Path::new("compare"), place]);
    println!("{found}");
    is_near(&found, "nchw", 1e-5);
    is_near(&found, "nhwc", 1e-5);
    is_near(&found, "tokens", 1e-2);
    is_near(&found, "mean", 1e-2);
    head_on_encoder(place);
}

/// A head with random weights on vectors of this width, and vectors.
fn head(features: &[f32], width: usize) -> HeadModel {
    let rows = features.len() / width;
    let projection = Projection::fit(Matrix::new(features, rows, width).unwrap(), 6).unwrap();
    let shape = HeadShape { width: projection.dimensions(), hidden: None, classes: CLASSES };
    let mut stream = Seed(1).stream(Domain::Init, 0, 0);
    let numbers = (0..shape.numbers()).map(|_| 4.0 * stream.normal() as f32).collect();
    HeadModel::new(projection, Head::new(shape, numbers).unwrap()).unwrap()
}

/// Writes a model with every operator that a head can bring, in the opset of the encoder.
fn write_head(folder: &Path, name: &str) {
    let file = fs::read(folder.join(format!("{name}.encoder.onnx"))).unwrap();
    let width = EncoderFile::read(&file).unwrap().width().unwrap();
    let mut stream = Seed(2).stream(Domain::Init, 0, 0);
    let features: Vec<f32> = (0..100 * width).map(|_| stream.normal() as f32).collect();
    let head = head(&features, width);
    let logits = head.logits(&features).unwrap();
    let labels: Vec<u32> = (0..CLASSES as u32).cycle().take(100).collect();
    let logits = Matrix::new(&logits, 100, CLASSES).unwrap();
    let calibrator = Calibrator::fit(CalibratorKind::Isotonic, logits, &labels, &|| false).unwrap();
    let thresholds = Thresholds { sets: vec![0.5; CLASSES], min_log_odds: 0.1 };
    let model = OnnxModel {
        reference: None,
        body: ModelBody::HeadOnEncoder(&file, &head),
        classes: CLASSES,
        calibrator: &calibrator,
        thresholds: Some(&thresholds),
        metadata: &[],
    };
    fs::write(folder.join(format!("{name}.head.onnx")), model.to_bytes().unwrap()).unwrap();
}

/// One graph of the encoder and a head; its logits are those of the head on the features.
fn head_on_encoder(folder: &Path) {
    let file = fs::read(folder.join("nchw.encoder.onnx")).unwrap();
    let width = EncoderFile::read(&file).unwrap().width().unwrap();
    let features: Vec<f32> = fs::read(folder.join("features.bin"))
        .unwrap()
        .as_chunks()
        .0
        .iter()
        .map(|&bytes| f32::from_le_bytes(bytes))
        .collect();
    let head = head(&features, width);
    let logits = head.logits(&features).unwrap();
    let calibrator = Calibrator::IDENTITY;
    let model = OnnxModel {
        reference: None,
        body: ModelBody::HeadOnEncoder(&file, &head),
        classes: CLASSES,
        calibrator: &calibrator,
        thresholds: None,
        metadata: &[],
    };
    let examples = folder.join("test_data_set_0");
    fs::create_dir(&examples).unwrap();
    fs::write(folder.join("model.onnx"), model.to_bytes().unwrap()).unwrap();
    let pixels = fs::read(folder.join("images.bin")).unwrap();
    let mut probabilities = Vec::new();
    let mut labels = Vec::new();
    let mut confidences = Vec::new();
    for row in logits.chunks_exact(CLASSES) {
        let mut p = [0.0; CLASSES];
        let label = calibrator.probabilities_into(row, &mut p).unwrap();
        labels.push(i64::try_from(label).unwrap());
        confidences.push(p[label]);
        probabilities.extend(p);
    }
    for (name, tensor) in [
        ("input_0.pb", Tensor::u8("images", &[ROWS, SIDE, SIDE, 3], &pixels)),
        ("output_0.pb", Tensor::f32("logits", &[ROWS, CLASSES], &logits)),
        ("output_1.pb", Tensor::f32("probabilities", &[ROWS, CLASSES], &probabilities)),
        ("output_2.pb", Tensor::i64("label", &[ROWS], &labels)),
        ("output_3.pb", Tensor::f32("confidence", &[ROWS], &confidences)),
    ] {
        fs::write(examples.join(name), tensor.to_message().into_bytes()).unwrap();
    }
    let found = compare(folder);
    println!("{found}");
    let largest = logits.iter().fold(0.0_f32, |most, logit| most.max(logit.abs()));
    is_near(&found, "logits", 2e-3 * f64::from(largest));
    is_near(&found, "label", 0.0);
}
