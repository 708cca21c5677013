//! How well the prediction sets and answers of heads keep their guarantees on test images: `head_guarantees RUN…`, each a
//! finished head run with a test split; with `--csv` first, a line for each run instead of means.
//!
//! The out-of-fold predictions calibrate, as at the end of a run, and the test images evaluate; means over the runs.
//! `cargo run --release --no-default-features -p calmix-bench --example head_guarantees runs/*`
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs;
use std::path::Path;

use calmix_metrics::fitted_calibrator::FittedCalibrator;
use calmix_metrics::held_out::{self, SetRule};
use calmix_metrics::predictions::Predictions;
use calmix_run::tensor_files::predictions_file;

const COVERAGE: f64 = 0.9;
const PRECISIONS: [f64; 2] = [0.9, 0.95];

/// The results of one run.
struct Kept {
    coverage: f64,
    size: f64,
    /// The share of the test images that is answered and the share of these that is correct, for each precision.
    answers: [(f64, Option<f64>); 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some("--csv") {
        return each_run(std::env::args().skip(2));
    }
    let runs: Vec<Kept> =
        std::env::args().skip(1).map(|run| evaluate(Path::new(&run))).collect::<Result<_, _>>()?;
    let mean = |of: &dyn Fn(&Kept) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    println!(
        "{} runs: coverage {:.1}% ({:.1} to {:.1}), {:.2} classes per set",
        runs.len(),
        100.0 * mean(&|run| run.coverage),
        100.0 * runs.iter().map(|run| run.coverage).fold(1.0, f64::min),
        100.0 * runs.iter().map(|run| run.coverage).fold(0.0, f64::max),
        mean(&|run| run.size)
    );
    for (place, precision) in PRECISIONS.into_iter().enumerate() {
        let answering: Vec<f64> = runs.iter().filter_map(|run| run.answers[place].1).collect();
        println!(
            "  precision {:.0}%: {:.1}% answered; {} runs answer, {:.1}% correct on average, {} below the precision",
            100.0 * precision,
            100.0 * mean(&|run| run.answers[place].0),
            answering.len(),
            100.0 * answering.iter().sum::<f64>() / answering.len().max(1) as f64,
            answering.iter().filter(|&&right| right < precision).count()
        );
    }
    Ok(())
}

/// Prints a line of CSV for each run.
fn each_run(runs: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    println!("run,coverage,set_size,answered_90,right_90,answered_95,right_95");
    for run in runs {
        let Kept { coverage, size, answers } = evaluate(Path::new(&run))?;
        let columns = answers.map(|(answered, right)| {
            let right = right.map_or_else(String::new, |right| format!("{right:.4}"));
            format!("{answered:.4},{right}")
        });
        let name = Path::new(&run).file_name().unwrap_or_default().to_string_lossy();
        println!("{name},{coverage:.4},{size:.3},{}", columns.join(","));
    }
    Ok(())
}

fn evaluate(run: &Path) -> Result<Kept, Box<dyn Error>> {
    let (labels, test) = (predictions(run, "-out-of-fold-ema")?, predictions(run, "-test-ema")?);
    let fitted = FittedCalibrator::fit_out_of_fold(&labels, &|| false)?.0;
    let held_out = held_out::score_cross_fitted(&labels, &fitted, &[], &|| false)?;
    let sets = held_out.sets(SetRule::Lac, COVERAGE)?;
    let thresholds = [held_out.answer_threshold(PRECISIONS[0])?, held_out.answer_threshold(PRECISIONS[1])?];
    let (mut covered, mut size, mut answered) = (0.0, 0.0, [(0.0, 0.0); 2]);
    let mut probabilities = vec![0.0; test.classes.len()];
    for ((logits, &label), &id) in test.matrix()?.iter().zip(&test.labels).zip(&test.ids) {
        let top = fitted.calibrator.probabilities_into(logits, &mut probabilities)?;
        let set = sets.set(&probabilities, id);
        covered += f64::from(u8::from(set.contains(&label)));
        size += set.len() as f64;
        let score = fitted.calibrator.answer_score(logits)?;
        for (threshold, (all, right)) in thresholds.iter().zip(&mut answered) {
            if threshold.is_some_and(|found| score >= found.threshold) {
                *all += 1.0;
                *right += f64::from(u8::from(top as u32 == label));
            }
        }
    }
    let images = test.labels.len() as f64;
    let answers = answered.map(|(all, right)| (all / images, (all > 0.0).then(|| right / all)));
    Ok(Kept { coverage: covered / images, size: size / images, answers })
}

/// Reads the predictions of the last step whose file name has this end.
fn predictions(run: &Path, end: &str) -> Result<Predictions, Box<dyn Error>> {
    let end = format!("{end}.safetensors");
    let mut files: Vec<_> = fs::read_dir(run.join("predictions"))?.collect::<Result<Vec<_>, _>>()?;
    files.retain(|file| file.file_name().to_string_lossy().ends_with(&end));
    let last = files.into_iter().map(|file| file.path()).max();
    let last = last.ok_or_else(|| format!("{}: no predictions *{end}", run.display()))?;
    Ok(predictions_file::from_bytes(&fs::read(last)?)?)
}
