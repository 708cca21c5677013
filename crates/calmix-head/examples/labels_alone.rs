//! Fits a classifier to vectors that all have a label, on one thread, and prints what that cost and how good it is:
//! `labels_alone VECTORS LABELS DIMENSIONS [TEST_VECTORS TEST_LABELS]`.
//!
//! Vectors are a file of f32, labels one of u32, as NumPy's `tofile` writes them. DIMENSIONS is `network.dimensions`: the
//! principal directions that are kept, 0 for all numbers as they are. Reading the files is not counted, all else is.
//! `bench/vectors/labels_alone.py` compares it with scikit-learn.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs;
use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_core::preset;
use calmix_core::pseudo::Base;
use calmix_core::rng::Seed;
use calmix_core::schedule::LearningRate;
use calmix_core::softmax::argmax;
use calmix_head::fit;
use calmix_head::progress::FitProgress;
use calmix_head::projection::Projection;
use calmix_head::samples::{HeadSamples, TrainingRows};
use calmix_head::settings::{Candidates, HeadSettings};

/// As in the recipe `vectors`.
const FOLDS: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [vectors, labels, dimensions, test @ ..] = &arguments[..] else {
        return Err("usage: labels_alone VECTORS LABELS DIMENSIONS [TEST_VECTORS TEST_LABELS]".into());
    };
    let vectors = floats(vectors)?;
    let labels = integers(labels)?;
    let names: Vec<String> =
        (0..=labels.iter().copied().max().unwrap_or_default()).map(|class| class.to_string()).collect();
    let ids: Vec<u64> = (0..labels.len() as u64).collect();
    let all: Vec<Option<u32>> = labels.iter().map(|&label| Some(label)).collect();
    let vectors = Matrix::new(&vectors, labels.len(), vectors.len() / labels.len().max(1))?;
    let begin = cpu_seconds()?;
    let projection = Projection::fit(vectors, dimensions.parse()?)?;
    let projected = projection.apply(vectors)?;
    let samples = HeadSamples {
        ids: &ids,
        vectors: Matrix::new(&projected, labels.len(), projection.dimensions())?.into(),
        weak: 0,
        strong: 0,
        labels: &all,
        classes: &names,
        groups: &[],
        chosen: &[],
        weights: &[],
    };
    let rows = TrainingRows { labelled: (0..labels.len()).collect(), unlabelled: Vec::new() };
    let stop = AtomicBool::new(false);
    let fitted = fit(samples, &rows, None, &settings(), 1, &FitProgress::new(&stop))?;
    let seconds = cpu_seconds()? - begin;
    let head = fitted.head().ok_or("no head")?;
    let nll = head.mean_nll().ok_or("no labels out of fold")?;
    print!("{{\"seconds\": {seconds:.3}, \"nll\": {nll:.5}");
    if let [vectors, labels] = test {
        let labels = integers(labels)?;
        let vectors = floats(vectors)?;
        let vectors = projection.apply(Matrix::new(&vectors, labels.len(), projection.width())?)?;
        let logits = head.trained.ema.forward(&vectors)?.logits;
        let wrong = logits.chunks(names.len()).zip(&labels);
        let wrong = wrong.filter(|(row, label)| argmax(row) != **label as usize).count();
        let logits = Matrix::new(&logits, labels.len(), names.len())?;
        let calibrator = &head.calibrator.calibrator().ok_or("no calibrator")?.calibrator;
        let probabilities = calibrator.probabilities(logits)?;
        let scored = probabilities.chunks(names.len()).zip(&labels);
        let test_nll: f64 = scored.map(|(row, &label)| -f64::from(row[label as usize]).ln()).sum();
        let count = labels.len() as f64;
        print!(", \"test_error\": {:.5}, \"test_nll\": {:.5}", wrong as f64 / count, test_nll / count);
    }
    println!("}}");
    Ok(())
}

fn settings() -> HeadSettings {
    HeadSettings {
        method: preset::paper(Base::Supervised),
        hidden: None,
        steps: 1,
        batch: 1,
        unlabelled_batch: 1,
        lr: 1.0,
        schedule: LearningRate::Cosine,
        momentum: 0.9,
        nesterov: true,
        weight_decay: 0.0,
        clip: None,
        ema_decay: 0.99,
        folds: FOLDS,
        candidates: Candidates::OneVector,
        labels_alone: false,
        neighbours: false,
        log_every: 0,
        seed: Seed(1),
    }
}

/// The time that this thread has run: with one thread, all of it.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = text.split_whitespace().next().ok_or("no time")?.parse()?;
    Ok(nanoseconds / 1e9)
}

fn floats(path: &str) -> Result<Vec<f32>, Box<dyn Error>> {
    let bytes = fs::read(path)?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|&number| f32::from_le_bytes(number)).collect())
}

fn integers(path: &str) -> Result<Vec<u32>, Box<dyn Error>> {
    let bytes = fs::read(path)?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|&number| u32::from_le_bytes(number)).collect())
}
