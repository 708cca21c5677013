//! Heads of earlier versions that were trained on features in bf16 or f16: how much their answers change with features in f32,
//! the only precision in which networks are run now.

use std::path::Path;
use std::sync::atomic::Ordering;

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::loader::Workers;
use calmix_io::shown::shown;
use calmix_lifecycle::prepared_dataset::prepared_folder;
use calmix_metrics::predictions::EvalSet;
use calmix_recipe::precision::Precision;
use calmix_run::read::{self, inspect};
use calmix_run::run::Paths;

use crate::error::CliError;
use crate::model::{Model, ModelError};
use crate::predict::prediction_rule::PredictionRule;
use crate::process::stop::Stop;
use crate::terminal::{status, warn};
use anyhow::{Context, Result};

/// The maximum number of test images that are compared.
const MAX_TEST_IMAGES: usize = 2_000;

/// Compares the answers of a head in f32 with those that its run stored, and refuses a large difference; returns `false` if the
/// user stops the command.
pub(crate) fn check(run: &Path, model: &Model, precision: Precision, stop: &Stop) -> Result<bool> {
    let refused = |why: &str| {
        let message = format!(
            "{}: its head was trained on features in {precision}, and calmix computes them in f32: {why}",
            shown(run.display())
        );
        CliError::invalid(message).hint("train it again, with the same command")
    };
    let difference = match PrecisionDifference::of_run(run, model, stop) {
        Ok(Some(difference)) => difference,
        Ok(None) if stop.flag().load(Ordering::Relaxed) => return Ok(false),
        Ok(None) => {
            return Err(refused("how much that changes cannot be measured without a test split").into());
        }
        // The dataset may have moved.
        Err(error) => {
            return Err(refused(&format!("how much that changes cannot be measured: {error:#}")).into());
        }
    };
    if difference.is_small() {
        warn(&format!(
            "the head of {} was trained on features in {precision}; in f32, {} of its {} test images get another label; train \
             it again to get rid of this comparison",
            shown(run.display()),
            percent(difference.changed),
            difference.samples,
        ));
        return Ok(true);
    }
    status(&difference.table(precision));
    Err(refused(&format!("its answers change by more than {}", PrecisionDifference::LIMITS)).into())
}

/// The difference between a run's answers on its test images and those in f32.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PrecisionDifference {
    samples: usize,
    /// The error of the run and that in f32.
    error: [f64; 2],
    /// The confidence gap (mean confidence − accuracy) of the run and that in f32.
    gap: [f64; 2],
    /// The change of the probabilities: the mean over all classes and images, and the largest.
    mean_change: f64,
    largest_change: f64,
    /// The share of images whose label changes.
    changed: f64,
}

impl PrecisionDifference {
    /// The limits of [`is_small`](Self::is_small), in words.
    const LIMITS: &str =
        "a mean change of the probabilities of 0.005, 2% other labels, and half a point of error and of gap";

    /// Compares the predictions that a run stored with those of the model in f32; `None` if it stored none, or if the user stops
    /// the command.
    fn of_run(run: &Path, model: &Model, stop: &Stop) -> Result<Option<Self>> {
        let result = read::result(run)?;
        let evaluations = result.map(|result| result.evaluations).unwrap_or_default();
        let test = evaluations.iter().find(|evaluation| evaluation.split == EvalSet::Test);
        let Some(stored) = test.map(|test| read::predictions_of(run, test)).transpose()?.flatten() else {
            return Ok(None);
        };
        let recipe = inspect::recipe(run)?.recipe;
        let root = Path::new(&recipe.dataset.path);
        let dataset = Dataset::open(&prepared_folder(&recipe, &Paths::new(run)), root)?;
        let apart = stored.ids.len().div_ceil(MAX_TEST_IMAGES).max(1);
        let ids: Vec<u64> = stored.ids.iter().copied().step_by(apart).collect();
        status(&format!("predicting {} test images in f32 …", ids.len()));
        let mut is_stopped = || stop.flag().load(Ordering::Relaxed);
        let found = match model.predict_samples(dataset, &ids, Workers::default(), &mut is_stopped) {
            Err(ModelError::Data(DataError::Interrupted)) => return Ok(None),
            found => found?.predictions,
        };
        let classes = model.classes().len().max(1);
        let mut own = Vec::with_capacity(found.logits.len());
        let mut rows = stored.ids.iter().zip(stored.logits.chunks_exact(classes));
        for id in &found.ids {
            let (_, row) =
                rows.find(|(other, _)| *other == id).context("a test image that the run did not predict")?;
            own.extend_from_slice(row);
        }
        Ok(Some(Self::between(model.rule(), &own, &found.logits, &found.labels)?))
    }

    /// Compares the logits of the run with those in f32, of the same images.
    fn between(rule: &PredictionRule, own: &[f32], in_f32: &[f32], labels: &[u32]) -> Result<Self> {
        let own = rule.predictions(own, 1)?;
        let in_f32 = rule.predictions(in_f32, 1)?;
        let samples = labels.len();
        let count = samples.max(1) as f64;
        let mut difference = Self {
            samples,
            error: [0.0; 2],
            gap: [0.0; 2],
            mean_change: 0.0,
            largest_change: 0.0,
            changed: 0.0,
        };
        for ((own, in_f32), &label) in own.iter().zip(&in_f32).zip(labels) {
            for (n, answer) in [own, in_f32].into_iter().enumerate() {
                let is_right = f64::from(u8::from(answer.label == label as usize));
                difference.error[n] += (1.0 - is_right) / count;
                difference.gap[n] += (f64::from(answer.confidence) - is_right) / count;
            }
            let classes = own.probabilities.len().max(1) as f64;
            for (own, in_f32) in own.probabilities.iter().zip(&in_f32.probabilities) {
                let change = f64::from((own - in_f32).abs());
                difference.mean_change += change / (count * classes);
                difference.largest_change = difference.largest_change.max(change);
            }
            difference.changed += f64::from(u8::from(own.label != in_f32.label)) / count;
        }
        Ok(difference)
    }

    /// Returns whether the answers in f32 are those of the run up to rounding.
    fn is_small(&self) -> bool {
        let points = |[own, in_f32]: [f64; 2]| (own - in_f32).abs() <= 0.005;
        self.mean_change <= 0.005 && self.changed <= 0.02 && points(self.error) && points(self.gap)
    }

    /// Formats a table for the terminal.
    fn table(&self, precision: Precision) -> String {
        let [own_error, error] = self.error.map(percent);
        let [own_gap, gap] = self.gap.map(percent);
        let word = precision.to_string();
        format!(
            "{} test images        {word:>8}       f32\n\
             \x20 error               {own_error:>8}  {error:>8}\n\
             \x20 confidence − accuracy {own_gap:>6}  {gap:>8}\n\
             change of the probabilities: mean {:.4}, largest {:.4}; other label: {}",
            self.samples,
            self.mean_change,
            self.largest_change,
            percent(self.changed)
        )
    }
}

fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}
