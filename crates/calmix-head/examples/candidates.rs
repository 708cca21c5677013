//! Fits all heads for one vector per sample, on one thread, and prints what each of them is worth on a test:
//! `candidates VECTORS LABELS TEST_VECTORS TEST_LABELS NEIGHBOURS`.
//!
//! Vectors are a file of f32, labels one of u32, as NumPy's `tofile` writes them; a row without a label has 4294967295. NEIGHBOURS is
//! `true` or `false`, as `network.neighbours`. `bench/vectors/neighbours.py` compares the heads with scikit-learn.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs;
use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_core::preset;
use calmix_core::pseudo::Base;
use calmix_core::rng::Seed;
use calmix_core::schedule::LearningRate;
use calmix_head::fit;
use calmix_head::progress::FitProgress;
use calmix_head::projection::Projection;
use calmix_head::samples::{HeadSamples, TrainingRows};
use calmix_head::settings::{Candidates, HeadSettings};
use calmix_metrics::calibrator::Calibrator;
use calmix_metrics::measure::{Binning, TopLabel, reliability_bins};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [vectors, labels, test_vectors, test_labels, neighbours] = &arguments[..] else {
        return Err("usage: candidates VECTORS LABELS TEST_VECTORS TEST_LABELS NEIGHBOURS".into());
    };
    let vectors = floats(vectors)?;
    let labels: Vec<Option<u32>> =
        integers(labels)?.into_iter().map(|label| (label != u32::MAX).then_some(label)).collect();
    let classes = labels.iter().flatten().max().map_or(0, |&label| label as usize + 1);
    let names: Vec<String> = (0..classes).map(|class| class.to_string()).collect();
    let ids: Vec<u64> = (0..labels.len() as u64).collect();
    let vectors = Matrix::new(&vectors, labels.len(), vectors.len() / labels.len().max(1))?;
    let begin = cpu_seconds()?;
    let projection = Projection::fit(vectors, 256)?;
    let projected = projection.apply(vectors)?;
    let samples = HeadSamples {
        ids: &ids,
        vectors: Matrix::new(&projected, labels.len(), projection.dimensions())?.into(),
        weak: 0,
        strong: 0,
        labels: &labels,
        classes: &names,
        groups: &[],
        chosen: &[],
        weights: &[],
    };
    let labelled: Vec<usize> = (0..labels.len()).filter(|&row| labels[row].is_some()).collect();
    let rows = TrainingRows { labelled, unlabelled: (0..labels.len()).collect() };
    let stop = AtomicBool::new(false);
    let settings = settings(neighbours.parse()?);
    let fitted = fit(samples, &rows, None, &settings, 1, &FitProgress::new(&stop))?;
    let seconds = cpu_seconds()? - begin;
    let truth = integers(test_labels)?;
    let test = floats(test_vectors)?;
    let test = projection.apply(Matrix::new(&test, truth.len(), projection.width())?)?;
    for (n, head) in fitted.heads.iter().enumerate() {
        let logits = head.trained.ema.forward(&test)?.logits;
        let logits = Matrix::new(&logits, truth.len(), classes)?;
        let calibrator =
            head.calibrator.calibrator().map_or(&Calibrator::IDENTITY, |fitted| &fitted.calibrator);
        let probabilities = calibrator.probabilities(logits)?;
        let of_truth = probabilities.chunks(classes).zip(&truth).map(|(row, &label)| row[label as usize]);
        let nll = of_truth.map(|p| -f64::from(p.max(1e-30)).ln()).sum::<f64>() / truth.len() as f64;
        let top = TopLabel::new(
            probabilities
                .chunks(classes)
                .map(|row| f64::from(row.iter().copied().fold(0.0, f32::max).min(1.0)))
                .collect(),
            logits
                .iter()
                .zip(&truth)
                .map(|(row, &label)| calmix_core::softmax::argmax(row) == label as usize)
                .collect(),
        )?;
        let wrong = top.correct().iter().filter(|&&right| !right).count() as f64 / truth.len() as f64;
        let ece = reliability_bins(&top, Binning::default());
        let gap: f64 = ece.iter().map(|bin| (bin.confidence - bin.accuracy).abs() * bin.count as f64).sum();
        println!(
            "{{\"head\": \"{:?}\", \"kept\": {}, \"out_of_fold\": {}, \"error\": {wrong:.5}, \"nll\": {nll:.5}, \
             \"ece\": {:.5}, \"seconds\": {seconds:.3}}}",
            head.candidate,
            n == fitted.selected,
            head.mean_nll().map_or("null".to_owned(), |nll| format!("{nll:.5}")),
            gap / truth.len() as f64
        );
    }
    Ok(())
}

fn settings(neighbours: bool) -> HeadSettings {
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
        folds: 10,
        candidates: Candidates::OneVector,
        labels_alone: false,
        neighbours,
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
