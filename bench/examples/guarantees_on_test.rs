//! How well prediction sets and answers keep their guarantees: `guarantees_on_test FILE…`, each the predictions of a run on
//! its test split.
//!
//! In each of 50 random splits, some labels calibrate (as `calmix calibrate` does) and all others evaluate.
//! `cargo run --release --no-default-features -p calmix-bench --example guarantees_on_test runs/a/predictions/step-000001000-test-ema.safetensors`
#![allow(clippy::print_stdout)]

use std::error::Error;

use calmix_core::rng::{Domain, Seed};
use calmix_core::softmax::argmax;
use calmix_metrics::fitted_calibrator::{FittedCalibrator, FittedOn};
use calmix_metrics::held_out::{self, SetRule};
use calmix_metrics::predictions::Predictions;
use calmix_run::tensor_files::predictions_file;

const SPLITS: u64 = 50;
const COVERAGE: f64 = 0.9;
const PRECISION: f64 = 0.9;

fn main() -> Result<(), Box<dyn Error>> {
    for file in std::env::args().skip(1) {
        let all = predictions_file::from_bytes(&std::fs::read(&file)?)?;
        let matrix = all.matrix()?;
        let right =
            matrix.iter().zip(&all.labels).filter(|(row, label)| argmax(row) as u32 == **label).count();
        println!("{file}: {:.1}% correct", 100.0 * right as f64 / all.labels.len() as f64);
        for n in [200, 1000] {
            let found: Vec<Split> =
                (0..SPLITS).map(|split| evaluate(&all, n, split)).collect::<Result<_, _>>()?;
            let mean = |of: &dyn Fn(&Split) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
            let share = |of: &dyn Fn(&Split) -> bool| 100.0 * mean(&|split| f64::from(u8::from(of(split))));
            for (name, pick) in [("LAC", 0), ("APS", 1)] {
                println!(
                    "  n = {n:4}  {name}: coverage {:.2}% on average, within 2 points in {:.0}% of splits, {:.2} classes",
                    100.0 * mean(&|split| split.sets[pick].0),
                    share(&|split| (split.sets[pick].0 - COVERAGE).abs() <= 0.02),
                    mean(&|split| split.sets[pick].1),
                );
            }
            println!(
                "  n = {n:4}  answers: the guarantee holds in {:.0}% of splits; {:.1}% answered on average, none in {:.0}% of \
                 splits",
                share(&|split| split.precision.is_none_or(|precision| precision >= PRECISION)),
                100.0 * mean(&|split| split.answered),
                share(&|split| split.precision.is_none()),
            );
        }
    }
    Ok(())
}

/// The results of one random split.
struct Split {
    /// Coverage and mean size of the sets of LAC and APS.
    sets: [(f64, f64); 2],
    answered: f64,
    precision: Option<f64>,
}

fn evaluate(all: &Predictions, n: usize, split: u64) -> Result<Split, Box<dyn Error>> {
    let mut rows: Vec<usize> = (0..all.labels.len()).collect();
    rows.sort_by_cached_key(|&row| Seed(split).stream(Domain::Split, n as u64, row as u64).next_u64());
    let (calibrating, evaluating) = rows.split_at(n.min(rows.len()));
    let some = chosen(all, calibrating);
    let fitted = FittedCalibrator::fit(&some, FittedOn::Later, &|| false)?;
    let held_out = held_out::score_cross_fitted(&some, &fitted, &[], &|| false)?;
    let map = fitted.calibrator;
    let rules = [held_out.sets(SetRule::Lac, COVERAGE)?, held_out.sets(SetRule::Aps, COVERAGE)?];
    let threshold = held_out.answer_threshold(PRECISION)?;
    let others = chosen(all, evaluating);
    let (mut sets, mut answered, mut right) = ([(0.0, 0.0); 2], 0.0, 0.0);
    let mut probabilities = vec![0.0; others.classes.len()];
    for ((logits, &label), &id) in others.matrix()?.iter().zip(&others.labels).zip(&others.ids) {
        let top = map.probabilities_into(logits, &mut probabilities)?;
        for (rule, (coverage, size)) in rules.iter().zip(&mut sets) {
            let set = rule.set(&probabilities, id);
            *coverage += f64::from(u8::from(set.contains(&label)));
            *size += set.len() as f64;
        }
        let score = map.answer_score(logits)?;
        if threshold.is_some_and(|found| score >= found.threshold) {
            answered += 1.0;
            right += f64::from(u8::from(top as u32 == label));
        }
    }
    let evaluated = evaluating.len() as f64;
    Ok(Split {
        sets: sets.map(|(coverage, size)| (coverage / evaluated, size / evaluated)),
        answered: answered / evaluated,
        precision: (answered > 0.0).then(|| right / answered),
    })
}

fn chosen(all: &Predictions, rows: &[usize]) -> Predictions {
    let width = all.classes.len();
    Predictions {
        ids: rows.iter().map(|&row| all.ids[row]).collect(),
        labels: rows.iter().map(|&row| all.labels[row]).collect(),
        logits: rows.iter().flat_map(|&row| &all.logits[row * width..(row + 1) * width]).copied().collect(),
        classes: all.classes.clone(),
        groups: Vec::new(),
        ..*all
    }
}
