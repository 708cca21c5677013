//! The effect of a temperature fitted on few labels:
//! `cargo run --release --no-default-features -p calmix-bench --example temperature_table -- RUN…`
//!
//! For each run and each number of labels, 200 random draws from its test predictions fit a temperature, and all other test
//! predictions evaluate it: the mean ECE (15 bins) after, and the share of draws that made it worse by more than a point. The
//! maximum-likelihood temperature is shown for comparison.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs;
use std::path::Path;

use calmix_core::matrix::Matrix;
use calmix_core::rng::{Domain, Seed};
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::error::MetricsError;
use calmix_metrics::measure::{Binning, TopLabel, ece, reliability_bins};
use calmix_run::tensor_files::predictions_file;

const LABELS: [usize; 5] = [10, 20, 50, 100, 500];
const DRAWS: u64 = 200;

struct LabelledRows {
    width: usize,
    logits: Vec<f32>,
    labels: Vec<u32>,
    /// The difference of each logit from the largest of its row.
    below: Vec<f64>,
    correct: Vec<bool>,
}

/// The result of one kind of fit with a number of labels.
struct Outcome {
    ece: f64,
    worse: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "ECE in per cent after a fit on n labels, mean of {DRAWS} draws (share of draws worse by more than a point)\n"
    );
    let heads: Vec<_> = LABELS.iter().map(|n| format!(" n = {n} | likeliest |")).collect();
    println!("| run | raw |{}\n|---|---|{}", heads.concat(), "---|---|".repeat(LABELS.len()));
    for run in std::env::args().skip(1) {
        let rows = LabelledRows::of_test(Path::new(&run))?;
        let raw = rows.confidences(Temperature::IDENTITY)?;
        let mut line = Vec::new();
        for n in LABELS {
            for fit in [Temperature::fit_penalised::<f32>, Temperature::fit::<f32>] {
                let Outcome { ece, worse } = outcome(&rows, &raw, n, fit)?;
                line.push(format!(" {:.1} ({:.1}%) |", 100.0 * ece, 100.0 * worse));
            }
        }
        let line = line.concat();
        let name = Path::new(&run).file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!("| {name} | {:.1} |{line}", 100.0 * ece_of(&raw, &vec![false; raw.len()])?);
    }
    Ok(())
}

fn outcome(
    rows: &LabelledRows,
    raw: &TopLabel,
    n: usize,
    fit: fn(Matrix<'_>, &[u32]) -> Result<Temperature, MetricsError>,
) -> Result<Outcome, Box<dyn Error>> {
    let (mut after, mut worse) = (0.0, 0);
    for draw in 0..DRAWS {
        let (drawn, is_drawn) = rows.draw(n, draw)?;
        let temperature = fit(drawn.matrix()?, &drawn.labels)?;
        let (before, now) = (ece_of(raw, &is_drawn)?, ece_of(&rows.confidences(temperature)?, &is_drawn)?);
        after += now;
        worse += u64::from(now > before + 0.01);
    }
    Ok(Outcome { ece: after / DRAWS as f64, worse: worse as f64 / DRAWS as f64 })
}

/// Computes the ECE of all predictions except those that are left out.
fn ece_of(predictions: &TopLabel, left_out: &[bool]) -> Result<f64, MetricsError> {
    let evaluate = |row: &usize| !left_out[*row];
    let confidence =
        (0..predictions.len()).filter(evaluate).map(|row| predictions.confidence()[row]).collect();
    let correct = (0..predictions.len()).filter(evaluate).map(|row| predictions.correct()[row]).collect();
    Ok(ece(&reliability_bins(&TopLabel::new(confidence, correct)?, Binning::default())))
}

impl LabelledRows {
    /// Reads the last test predictions of a run.
    fn of_test(run: &Path) -> Result<Self, Box<dyn Error>> {
        let names = fs::read_dir(run.join("predictions"))?.filter_map(|entry| Some(entry.ok()?.path()));
        let is_test = |path: &std::path::PathBuf| path.to_string_lossy().ends_with("-test-ema.safetensors");
        let last =
            names.filter(is_test).max().ok_or_else(|| format!("{}: no test predictions", run.display()))?;
        let test = predictions_file::from_bytes(&fs::read(last)?)?;
        Ok(Self::new(test.classes.len(), test.logits, test.labels)?)
    }

    fn new(width: usize, logits: Vec<f32>, labels: Vec<u32>) -> Result<Self, MetricsError> {
        let mut below = Vec::with_capacity(logits.len());
        for row in logits.chunks(width) {
            let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            below.extend(row.iter().map(|z| f64::from(*z) - f64::from(top)));
        }
        let wrong = |_| MetricsError::NoSamples;
        let matrix = Matrix::new(&logits, labels.len(), width).map_err(wrong)?;
        let correct = TopLabel::from_logits(matrix, &labels, 1.0)?.correct().to_vec();
        Ok(Self { width, logits, labels, below, correct })
    }

    fn matrix(&self) -> Result<Matrix<'_>, Box<dyn Error>> {
        Ok(Matrix::new(&self.logits, self.labels.len(), self.width)?)
    }

    /// Computes the confidences at a temperature.
    fn confidences(&self, temperature: Temperature) -> Result<TopLabel, MetricsError> {
        // The system's exp is several times as fast as that of calmix-core, and accurate enough for a table with one digit.
        let beta = 1.0 / temperature.value();
        let winner = |row: &[f64]| 1.0 / row.iter().map(|z| (beta * z).exp()).sum::<f64>();
        TopLabel::new(self.below.chunks(self.width).map(winner).collect(), self.correct.clone())
    }

    /// Draws `n` rows at random; also returns for every row whether it was drawn.
    fn draw(&self, n: usize, draw: u64) -> Result<(Self, Vec<bool>), MetricsError> {
        let mut stream = Seed(draw).stream(Domain::Split, n as u64, 0);
        let mut is_drawn = vec![false; self.labels.len()];
        let (mut logits, mut labels) = (Vec::new(), Vec::new());
        for row in stream.draw_without_replacement(self.labels.len() as u64, n) {
            let row = row as usize;
            is_drawn[row] = true;
            logits.extend_from_slice(&self.logits[row * self.width..(row + 1) * self.width]);
            labels.push(self.labels[row]);
        }
        Ok((Self::new(self.width, logits, labels)?, is_drawn))
    }
}
