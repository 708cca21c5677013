//! The choice of `--mix`: known shares of the classes, or an estimate from a first pass over the samples.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_metrics::held_out::SetRule;
use calmix_metrics::shift::{NotChecked, ShiftDetector, ShiftTests, detector::STRANGENESS_LEVEL};

use super::input::LogitBatch;
use super::list_reader::is_stdin;
use super::other_mix::{OtherMix, ProbabilitySample, read_shares};
use super::prediction_rule::PredictionRule;
use super::shift_check::ShiftCheck;
use crate::args::predict::PredictArgs;
use crate::error::CliError;
use crate::model::options::ModelOptions;
use crate::terminal::{status, warn};

/// The value of `--mix` that requests an estimate.
const ESTIMATE: &str = "estimate";
/// The largest number of classes whose shares are printed.
const MAX_SHOWN: usize = 5;

/// Returns the rule that rows are predicted by: that of the model, or adapted to the mix of `--mix`. `batches` starts a first pass
/// over the samples. `None` if the command is stopped during it.
///
/// # Errors
/// If the mix cannot be known or estimated, or the first pass fails.
pub(crate) fn rule_of_mix<B: Iterator<Item = Result<LogitBatch>>>(
    args: &PredictArgs,
    (rule, check): (&PredictionRule, &ShiftCheck),
    options: &ModelOptions,
    is_sharded: bool,
    stop: &AtomicBool,
    batches: impl FnOnce() -> Result<B>,
) -> Result<Option<PredictionRule>> {
    let Some(mix) = &args.mix else { return Ok(Some(rule.clone())) };
    let Some(detector) = check.detector().filter(|detector| detector.labels() > 0) else {
        let why = check.missing().unwrap_or("no labels were held out from training");
        let message = format!("--mix weights the held-out labels of the run: {why}");
        return Err(CliError::invalid(message).hint("leave it out, or train the run again").into());
    };
    if options.sets == SetRule::Aps {
        let message = "--mix adapts sets of --sets lac or lac-by-class, not of aps";
        return Err(CliError::invalid(message).hint("--sets lac").into());
    }
    let labels = &detector.reference().labels;
    if mix.as_os_str() != ESTIMATE {
        let shares = read_shares(mix, &rule.info().classes)?;
        return Ok(Some(rule.for_mix(OtherMix::known(&shares, labels), labels, options)?));
    }
    let is_piped = args.paths.iter().any(|path| is_stdin(path));
    if is_sharded || is_piped {
        let what =
            if is_sharded { "a shard has only some of them" } else { "standard input is read only once" };
        let message = format!("--mix {ESTIMATE} reads all samples twice, and {what}");
        let hint = "estimate the mix on all samples in files, and pass its shares with --mix FILE";
        return Err(CliError::invalid(message).hint(hint).into());
    }
    let mut sums = detector.new_sums();
    let mut sample = ProbabilitySample::new(rule.info().classes.len());
    for batch in batches()? {
        let batch = batch?;
        let probabilities = rule.calibrated(&batch.logits)?;
        for (row, probabilities) in probabilities.chunks_exact(labels.classes.max(1)).enumerate() {
            let observed = batch.observed.get(row).cloned().unwrap_or_default();
            sums.add("", &observed, probabilities);
            sample.add(probabilities);
        }
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    if !is_explained(detector.tests(&sums, None)) {
        return Ok(Some(rule.clone()));
    }
    let estimated = sample.estimate(detector, detector.mix(&sums, None))?;
    if !estimated.is_other {
        status("the mix of classes is that of the held-out labels as far as these samples show: not adapted");
        return Ok(Some(rule.clone()));
    }
    status(&adapted_text(&estimated.mix, rule, detector));
    Ok(Some(rule.for_mix(estimated.mix, labels, options)?))
}

/// Warns if a change of the mix does not explain the samples. Without features that cannot be tested.
fn is_explained(tests: Result<ShiftTests, NotChecked>) -> bool {
    match tests {
        Ok(tests) if tests.strangeness <= STRANGENESS_LEVEL => {
            warn("the samples are unlike those of training, which no mix of classes explains: not adapted");
            false
        }
        Ok(_) => true,
        Err(NotChecked::TooFewRows(rows)) => {
            warn(&format!("{rows} rows are too few to estimate the mix of classes: not adapted"));
            false
        }
        Err(_) => {
            warn(
                "whether the samples are otherwise like those of training is not tested: the run kept no features",
            );
            true
        }
    }
}

/// Describes the shares that changed the most.
fn adapted_text(mix: &OtherMix, rule: &PredictionRule, detector: &ShiftDetector) -> String {
    let before = calmix_metrics::shift::label_shares(&detector.reference().labels.labels, mix.shares.len());
    let change = |class: usize| (mix.shares[class] - before[class]).abs();
    let mut classes: Vec<usize> = (0..mix.shares.len()).collect();
    classes.sort_by(|&a, &b| change(b).total_cmp(&change(a)).then(a.cmp(&b)));
    let mut lines =
        vec!["adapted to another mix of classes; sets and abstention are estimates, too".to_owned()];
    for class in classes.into_iter().take(MAX_SHOWN) {
        let name = shown(&rule.info().classes[class]);
        let percent = |share: f64| format!("{:.1}%", 100.0 * share);
        let interval = mix
            .intervals
            .get(class)
            .map_or(String::new(), |[low, high]| format!(" ({} to {})", percent(*low), percent(*high)));
        lines.push(format!(
            "  {name}: {}{interval}, {} of the labels",
            percent(mix.shares[class]),
            percent(before[class])
        ));
    }
    lines.join("\n")
}
