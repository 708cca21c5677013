//! Fits the head to the labels so far, as `calmix train` does to one vector per sample.

use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_core::preset;
use calmix_core::pseudo::Base;
use calmix_core::schedule::LearningRate;
use calmix_core::softmax::argmax;
use calmix_head::fit::{FittedHead, fit};
use calmix_head::progress::FitProgress;
use calmix_head::samples::{HeadSamples, TrainingRows};
use calmix_head::settings::{Candidates, HeadSettings};
use calmix_metrics::calibrator::Calibrator;
use calmix_metrics::stats::clopper_pearson;

use crate::answer::{Answer, EstimatedError, Prediction};
use crate::request::Request;

/// The confidence level of the interval of the error.
const LEVEL: f64 = 0.95;
/// The number of rows whose logits are in memory at once.
const BLOCK: usize = 2_048;

/// Fits the head and predicts all rows.
///
/// # Errors
/// If the request contradicts itself, or a number is not finite.
pub fn refit(request: &Request) -> Result<Answer, String> {
    let Request { width, classes, folds, seed, ref ids, labels: ref given, ref vectors } = *request;
    let vectors = Matrix::new(vectors, ids.len(), width).map_err(|error| error.to_string())?;
    let mut labels = vec![None; ids.len()];
    for label in given {
        labels[label.row] = Some(label.class);
    }
    let chosen: Vec<usize> = given.iter().filter(|label| label.is_chosen).map(|label| label.row).collect();
    let names: Vec<String> = (0..classes).map(|class| class.to_string()).collect();
    let samples = HeadSamples {
        ids,
        vectors: vectors.into(),
        weak: 0,
        strong: 0,
        labels: &labels,
        classes: &names,
        groups: &[],
        chosen: &chosen,
        weights: &[],
    };
    let rows = TrainingRows {
        labelled: given.iter().map(|label| label.row).collect(),
        unlabelled: (0..ids.len()).collect(),
    };
    let settings = HeadSettings {
        // The heads of one vector have no steps: of these settings only folds, candidates and seed apply.
        method: preset::paper(Base::Supervised),
        hidden: None,
        steps: 1,
        batch: 1,
        unlabelled_batch: 1,
        lr: 1.0,
        schedule: LearningRate::Constant,
        momentum: 0.0,
        nesterov: false,
        weight_decay: 0.0,
        clip: None,
        ema_decay: 0.0,
        folds,
        candidates: Candidates::OneVector,
        labels_alone: false,
        neighbours: false,
        log_every: 0,
        seed,
    };
    let stop = AtomicBool::new(false);
    let fitted = fit(samples, &rows, None, &settings, 1, &FitProgress::new(&stop))
        .map_err(|error| error.to_string())?;
    let kept = fitted.head().ok_or("no head was fitted")?;
    let predictions = predictions(kept, vectors)?;
    Ok(Answer { kept: kept.candidate, error: estimated_error(kept)?, predictions })
}

fn predictions(kept: &FittedHead, vectors: Matrix<'_>) -> Result<Vec<Prediction>, String> {
    let classes = kept.trained.ema.shape().classes.max(1);
    let calibrator = kept.calibrator.calibrator().map_or(&Calibrator::IDENTITY, |fitted| &fitted.calibrator);
    let mut probabilities = vec![0.0; classes];
    let mut predictions = Vec::with_capacity(vectors.rows());
    for block in vectors.data().chunks(BLOCK * vectors.width()) {
        let output = kept.trained.ema.forward(block).map_err(|error| error.to_string())?;
        for logits in output.logits.chunks_exact(classes) {
            let class = calibrator
                .probabilities_into(logits, &mut probabilities)
                .map_err(|error| error.to_string())?;
            let confidence = probabilities.get(class).copied().unwrap_or_default();
            predictions.push(Prediction { class: class as u32, confidence, margin: margin(logits) });
        }
    }
    Ok(predictions)
}

/// Returns the difference between the two largest logits.
fn margin(logits: &[f32]) -> f32 {
    let most = argmax(logits);
    let others = logits.iter().enumerate().filter(|(class, _)| *class != most);
    logits.get(most).copied().unwrap_or_default() - others.fold(f32::NEG_INFINITY, |a, (_, &b)| a.max(b))
}

/// Counts the labels drawn at random that the heads of the folds predict wrong. A label whose class no other fold has is wrong.
fn estimated_error(kept: &FittedHead) -> Result<EstimatedError, String> {
    let predictions = &kept.predictions;
    let logits = predictions.matrix().map_err(|error| error.to_string())?;
    let wrong = logits.iter().zip(&predictions.labels).filter(|(row, label)| argmax(row) != **label as usize);
    let wrong = wrong.count() + kept.unseen.len();
    let labels = predictions.ids.len() + kept.unseen.len();
    if labels == 0 {
        return Ok(EstimatedError::default());
    }
    let interval = clopper_pearson(wrong, labels, LEVEL).map_err(|error| error.to_string())?;
    let [low, high] = [interval.low, interval.high].map(|end| end as f32);
    Ok(EstimatedError { labels: labels as u32, wrong: wrong as u32, low, high })
}

#[cfg(test)]
mod tests {
    use calmix_core::rng::{Domain, Seed};

    use super::*;
    use crate::request::Label;

    const WIDTH: usize = 8;
    const CLASSES: usize = 3;
    const ROWS: usize = 240;

    /// Clouds around an axis for each class, with labels in the first rows.
    fn request(labels: impl IntoIterator<Item = Label>) -> Request {
        let mut stream = Seed(3).stream(Domain::Init, 0, 0);
        let mut vectors = Vec::new();
        for row in 0..ROWS {
            for place in 0..WIDTH {
                let centre = if place == row % CLASSES { 1.0 } else { 0.0 };
                vectors.push((centre + 0.15 * stream.normal()) as f32);
            }
        }
        let ids = (0..ROWS as u64).collect();
        let labels = labels.into_iter().collect();
        Request { width: WIDTH, classes: CLASSES, folds: 5, seed: Seed(1), ids, labels, vectors }
    }

    fn label(row: usize, is_chosen: bool) -> Label {
        Label { row, class: (row % CLASSES) as u32, is_chosen }
    }

    #[test]
    fn few_labels_predict_the_clouds() {
        let answer = refit(&request((0..12).map(|row| label(row, row >= 6)))).unwrap();
        assert_eq!(answer.predictions.len(), ROWS);
        let wrong = (0..ROWS).filter(|&row| answer.predictions[row].class as usize != row % CLASSES);
        assert!(wrong.count() < 5);
        assert_eq!(answer.error.labels, 6, "chosen labels say nothing about the error");
        assert!(answer.error.high > 0.3 && answer.predictions.iter().all(|row| row.margin >= 0.0));
    }

    #[test]
    fn numbers_of_an_answer_are_in_columns() {
        let answer = refit(&request((0..9).map(|row| label(row, false)))).unwrap();
        let bytes = answer.bytes();
        let word = |at: usize| u32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().unwrap());
        assert_eq!(bytes.len(), 4 * (6 + 3 * ROWS));
        assert_eq!([word(0), word(2)], [ROWS as u32, 9]);
        let last = &answer.predictions[ROWS - 1];
        assert_eq!(word(5 + ROWS), last.class);
        assert_eq!(f32::from_bits(word(5 + 2 * ROWS)), last.confidence);
        assert_eq!(f32::from_bits(word(5 + 3 * ROWS)), last.margin);
    }

    #[test]
    fn broken_vectors_and_labels_are_refused() {
        let mut broken = request([label(0, false), label(1, false)]);
        broken.vectors[9] = f32::NAN;
        assert!(refit(&broken).unwrap_err().contains("row 1"));
        let unknown = Label { row: 0, class: 9, is_chosen: false };
        assert!(refit(&request([unknown])).unwrap_err().contains("class 9"));
        assert!(refit(&request([])).is_err());
    }
}
