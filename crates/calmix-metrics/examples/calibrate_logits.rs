//! Fits a temperature on logits and prints ECE and NLL before and after:
//! `cargo run -p calmix-metrics --example calibrate_logits [FILE]`
//!
//! A line of the file is one sample: its class, from 0, and then its logits, with commas between them (`2,0.1,-1.3,4.0`).
//! The temperature is fitted on every second line and evaluated on the others: on the samples that it was fitted on, its
//! metrics would be optimistic. Without a file the logits are synthetic, and three times too large.
#![allow(clippy::print_stdout)]

use std::error::Error;

use calmix_core::matrix::Matrix;
use calmix_core::rng::{Domain, Seed};
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::error::MetricsError;
use calmix_metrics::measure::{Binning, TopLabel, ece, nll_from_logits, reliability_bins};

/// A class and the logits that a model computed for it.
struct Sample {
    label: u32,
    logits: Vec<f32>,
}

/// Logits, row after row, and the class of each row.
#[derive(Default)]
struct Samples {
    logits: Vec<f32>,
    labels: Vec<u32>,
}

impl Samples {
    fn add(&mut self, sample: &Sample) {
        self.labels.push(sample.label);
        self.logits.extend(&sample.logits);
    }

    fn matrix(&self) -> Result<Matrix<'_>, Box<dyn Error>> {
        let width = self.logits.len() / self.labels.len().max(1);
        Ok(Matrix::new(&self.logits, self.labels.len(), width)?)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let samples = match std::env::args().nth(1) {
        Some(file) => parse(&std::fs::read_to_string(file)?)?,
        None => synthetic(),
    };
    let mut fitting = Samples::default();
    let mut held_out = Samples::default();
    for (row, sample) in samples.iter().enumerate() {
        let half = if row % 2 == 0 { &mut fitting } else { &mut held_out };
        half.add(sample);
    }
    let temperature = Temperature::fit(fitting.matrix()?, &fitting.labels)?.value();
    println!("temperature {temperature:.3}, fitted on {} samples", fitting.labels.len());
    for (name, temperature) in [("before", 1.0), ("after", temperature)] {
        let (ece, nll) = measure(held_out.matrix()?, &held_out.labels, temperature)?;
        let percent = 100.0 * ece;
        println!("{name:<6}  ECE {percent:.2}%  NLL {nll:.4}  on {} others", held_out.labels.len());
    }
    Ok(())
}

/// The ECE in 15 bins of equal width, and the NLL.
fn measure(logits: Matrix<'_>, labels: &[u32], temperature: f64) -> Result<(f64, f64), MetricsError> {
    let predictions = TopLabel::from_logits(logits, labels, temperature)?;
    let ece = ece(&reliability_bins(&predictions, Binning::default()));
    Ok((ece, nll_from_logits(logits, labels, temperature)?))
}

/// Reads one sample per line.
fn parse(text: &str) -> Result<Vec<Sample>, String> {
    let mut samples: Vec<Sample> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = |problem: &str| format!("line {}: {problem}: {line:?}", number + 1);
        let (label, logits) = line.split_once(',').ok_or_else(|| wrong("no logits after the class"))?;
        let label = label.trim().parse().map_err(|_| wrong("the class is not a number"))?;
        let logits: Result<Vec<f32>, _> = logits.split(',').map(|logit| logit.trim().parse()).collect();
        let logits = logits.map_err(|_| wrong("a logit is not a number"))?;
        if samples.first().is_some_and(|first| first.logits.len() != logits.len()) {
            return Err(wrong("the number of logits differs from the first line"));
        }
        samples.push(Sample { label, logits });
    }
    Ok(samples)
}

/// 4,000 samples of three classes, labelled according to the softmax of their logits, which are then tripled.
fn synthetic() -> Vec<Sample> {
    (0..4_000)
        .map(|sample| {
            let mut stream = Seed(0).stream(Domain::Split, 0, sample);
            let logits: Vec<f64> = (0..3).map(|_| 1.5 * stream.normal()).collect();
            let weights: Vec<f64> = logits.iter().map(|logit| logit.exp()).collect();
            let mut left = stream.uniform() * weights.iter().sum::<f64>();
            let drawn = weights.iter().position(|weight| {
                left -= weight;
                left < 0.0
            });
            let label = drawn.unwrap_or(weights.len() - 1) as u32;
            Sample { label, logits: logits.iter().map(|logit| (3.0 * logit) as f32).collect() }
        })
        .collect()
}
