//! Calibrators, prediction sets and abstention in a graph: onnxruntime answers as the library does.

use std::fs;
use std::path::Path;

use calmix_core::matrix::Matrix;
use calmix_core::rng::{Domain, Seed};
use calmix_head::model::HeadModel;
use calmix_head::network::{Head, HeadShape};
use calmix_head::projection::Projection;
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::calibrator::{Calibrator, CalibratorKind};
use calmix_onnx::decision::Thresholds;
use calmix_onnx::error::OnnxError;
use calmix_onnx::model::{ModelBody, OnnxModel};
use calmix_onnx::tensor::Tensor;
use calmix_testkit::onnxruntime::{compare, is_near};

const WIDTH: usize = 20;
const ROWS: usize = 1_500;

/// A head on vectors, some of which are so long that their squares are infinite, one of which is the mean itself, and one
/// the nearest to it that there is.
fn head(classes: usize, hidden: Option<usize>, dimensions: usize) -> (HeadModel, Vec<f32>) {
    let mut stream = Seed(7).stream(Domain::Init, classes as u64, dimensions as u64);
    let mut vectors: Vec<f32> = (0..ROWS * WIDTH).map(|_| stream.normal() as f32).collect();
    let projection = Projection::fit(Matrix::new(&vectors, ROWS, WIDTH).unwrap(), dimensions).unwrap();
    vectors[..WIDTH].copy_from_slice(projection.mean());
    for (row, scale) in [(1, 1e4), (2, 3e19), (3, 1e30), (4, 1e37)] {
        vectors[row * WIDTH..][..WIDTH].iter_mut().for_each(|number| *number *= scale);
    }
    vectors[5 * WIDTH..6 * WIDTH].copy_from_slice(projection.mean());
    vectors[5 * WIDTH] = projection.mean()[0].next_up();
    let shape = HeadShape { width: projection.dimensions(), hidden, classes };
    // Logits of about ten, as those of trained heads.
    let scale = if hidden.is_some() { 1.5 } else { 6.0 };
    let numbers = (0..shape.numbers()).map(|_| (scale * stream.normal()) as f32).collect();
    let head = Head::new(shape, numbers).unwrap();
    (HeadModel::new(projection, head).unwrap(), vectors)
}

/// Labels that the logits get right in about two of three rows.
fn labels(logits: Matrix<'_>) -> Vec<u32> {
    let mut stream = Seed(9).stream(Domain::Init, 0, 0);
    let mut p = vec![0.0; logits.width()];
    let mut drawn = Vec::new();
    for row in logits.iter() {
        Temperature::new(3.0).unwrap().probabilities_into(row, &mut p);
        let mut left = stream.uniform() as f32;
        let class = p.iter().position(|p| {
            left -= p;
            left < 0.0
        });
        drawn.push(class.unwrap_or(0) as u32);
    }
    drawn
}

fn write_tensor(folder: &Path, name: &str, tensor: &Tensor) {
    fs::write(folder.join("test_data_set_0").join(name), tensor.to_message().into_bytes()).unwrap();
}

/// Writes the model and the library's answers for all rows.
fn write(
    folder: &Path,
    model: &HeadModel,
    vectors: &[f32],
    calibrator: &Calibrator,
    thresholds: &Thresholds,
) {
    let logits = model.logits(vectors).unwrap();
    let classes = model.head().shape().classes;
    let graph = OnnxModel {
        reference: None,
        body: ModelBody::HeadOnVectors(model),
        classes,
        calibrator,
        thresholds: Some(thresholds),
        metadata: &[("key".to_owned(), "värde".to_owned())],
    };
    fs::create_dir_all(folder.join("test_data_set_0")).unwrap();
    fs::write(folder.join("model.onnx"), graph.to_bytes().unwrap()).unwrap();
    let mut all = Vec::new();
    let mut winners = Vec::new();
    let mut confidences = Vec::new();
    let mut members = Vec::new();
    let mut abstentions = Vec::new();
    for row in logits.chunks_exact(classes) {
        let mut p = vec![0.0; classes];
        let winner = calibrator.probabilities_into(row, &mut p).unwrap();
        winners.push(i64::try_from(winner).unwrap());
        confidences.push(p[winner]);
        let scores = p.iter().zip(&thresholds.sets).enumerate();
        members.extend(scores.map(|(class, (&p, &most))| class == winner || 1.0 - f64::from(p) <= most));
        abstentions.push(calibrator.answer_score(row).unwrap() < thresholds.min_log_odds);
        all.extend(p);
    }
    let rows = winners.len();
    assert!(abstentions.contains(&true) && abstentions.contains(&false));
    assert!(members.iter().filter(|&&member| member).count() > rows);
    let shape = [rows, classes];
    write_tensor(folder, "input_0.pb", &Tensor::f32("vectors", &[rows, WIDTH], vectors));
    write_tensor(folder, "output_0.pb", &Tensor::f32("logits", &shape, &logits));
    write_tensor(folder, "output_1.pb", &Tensor::f32("probabilities", &shape, &all));
    write_tensor(folder, "output_2.pb", &Tensor::i64("label", &[rows], &winners));
    write_tensor(folder, "output_3.pb", &Tensor::f32("confidence", &[rows], &confidences));
    write_tensor(folder, "output_4.pb", &Tensor::bool("set", &shape, &members));
    write_tensor(folder, "output_5.pb", &Tensor::bool("abstain", &[rows], &abstentions));
}

/// Two classes and many, linear and hidden heads, all or some dimensions. No threshold is within rounding of a score: the
/// answers are the same.
#[test]
fn every_calibrator_answers_as_the_library_does() {
    let folder = tempfile::tempdir().unwrap();
    for (classes, hidden, dimensions) in [(2, None, 0), (10, Some(16), 8), (60, None, 12)] {
        let (model, vectors) = head(classes, hidden, dimensions);
        let logits = model.logits(&vectors).unwrap();
        let logits = Matrix::new(&logits, ROWS, classes).unwrap();
        let labels = labels(logits);
        for kind in CalibratorKind::ALL {
            let calibrator = Calibrator::fit(kind, logits, &labels, &|| false).unwrap();
            // No share of a few labels, which an isotonic map gives to many rows at once.
            let mut sets = vec![0.683_71; classes];
            sets[0] = f64::INFINITY;
            let mut scores: Vec<f64> =
                logits.iter().map(|row| calibrator.answer_score(row).unwrap()).collect();
            scores.sort_by(f64::total_cmp);
            let min_log_odds = f64::midpoint(scores[ROWS / 3], scores[ROWS / 3 + 1]);
            let place = folder.path().join(format!("{classes}-{kind:?}"));
            write(&place, &model, &vectors, &calibrator, &Thresholds { sets, min_log_odds });
            let found = compare(&place);
            println!("{classes} {kind:?}: {}", found["differences"]);
            let most = if kind == CalibratorKind::Isotonic { 1e-4 } else { 1e-5 };
            let largest = logits.data().iter().fold(0.0_f32, |most, logit| most.max(logit.abs()));
            is_near(&found, "logits", 1e-5 * f64::from(largest));
            is_near(&found, "probabilities", most);
            is_near(&found, "confidence", most);
            for output in ["label", "set", "abstain"] {
                is_near(&found, output, 0.0);
            }
            assert_eq!(found["metadata"]["key"], "värde");
        }
    }
}

#[test]
fn contradictions_are_refused() {
    let (model, _) = head(10, None, 8);
    let calibrator = Calibrator::IDENTITY;
    let of = |classes, thresholds| OnnxModel {
        reference: None,
        body: ModelBody::HeadOnVectors(&model),
        classes,
        calibrator: &calibrator,
        thresholds,
        metadata: &[],
    };
    assert!(of(10, None).to_bytes().is_ok());
    assert!(matches!(of(9, None).to_bytes(), Err(OnnxError::Model(_))));
    let thresholds = Thresholds { sets: vec![0.5; 3], min_log_odds: 0.0 };
    assert!(matches!(of(10, Some(&thresholds)).to_bytes(), Err(OnnxError::Model(_))));
}
