//! Tables of metrics: error and calibration with confidence intervals, before and after calibration.

use calmix_metrics::calibrator::CalibratorKind;
use calmix_metrics::conformal::PredictionSets;
use calmix_metrics::evaluate::{Calibrated, EvaluatedBy, Evaluation, Selected};
use calmix_metrics::fitted_calibrator::{FittedCalibrator, FittedOn, TrainingLabels, Uncalibrated};
use calmix_metrics::held_out::HeldOut;
use calmix_metrics::metrics::{
    ExactIntervals, Interval, Intervals, LEVEL, MIN_SAMPLES_FOR_ECE, MIN_SAMPLES_TO_ASSESS, Metrics,
};
use calmix_metrics::predictions::{EvalModel, EvalSet};
use calmix_run::events::Event;
use calmix_run::result::RunResult;

use crate::model::options::ModelOptions;
use crate::output::format::{
    confidence_in_words, counted, counted_in_groups, decimal, ece_in_words, grouped, over_or_under, percent,
    pseudo_in_words, signed_gap,
};
use crate::predict::input::InputKind;

/// The name of a metric, its value, and its value after calibration.
type MetricRow = (&'static str, String, Option<String>);

/// The width of the name column, unless the title is longer.
const NAME_WIDTH: usize = 26;
/// The difference of two shares that the tables can show.
const SHOWN_DIFFERENCE: f64 = 0.000_5;
/// The row of the Brier score.
const BRIER: &str = "Brier";

/// The state of a run's calibrator, which depends on whether the run has ended.
#[derive(Debug, Clone, Copy)]
pub enum CalibratorState<'a> {
    /// The run has not ended, so it has no calibrator yet.
    NotYet,
    /// The run has ended; with the reason if it has no calibrator.
    Ended(Option<&'a Uncalibrated>),
}

/// Shows the metrics of evaluations, one table per split; `None` without evaluations.
pub fn table(evaluations: &[&Evaluation], state: CalibratorState<'_>, kind: InputKind) -> Option<String> {
    let tables = evaluations.iter().map(|evaluation| evaluation_table(evaluation, kind)).collect::<Vec<_>>();
    let last = evaluations.last()?;
    let mut notes = vec![
        "brackets: 95% confidence intervals, exact for the error and derived from it for the gap".to_owned(),
    ];
    if let Some(intervals) = &last.intervals {
        let resamples = counted(intervals.replicates, "bootstrap resample");
        notes.push(format!("the other intervals are from {resamples}"));
    }
    if evaluations.iter().any(|evaluation| evaluation.samples < MIN_SAMPLES_FOR_ECE) {
        notes.push(format!("an ECE needs at least 1,000 {}s", kind.word()));
    }
    notes.push(match (&last.calibrated, state) {
        (Some(calibrated), _) => {
            fitted_by(&calibrator_name(calibrated), calibrated.fitted_on, calibrated.fitted_samples)
        }
        (None, CalibratorState::Ended(why)) => uncalibrated_reason(why),
        (None, CalibratorState::NotYet) => {
            "confidence intervals and a temperature are computed at the end of the run".to_owned()
        }
    });
    Some(format!("{}\n{}\n", tables.join("\n"), notes.join("\n")))
}

/// Explains why a run has neither metrics nor a calibrator.
pub fn without_metrics(why: Option<&Uncalibrated>, has_head: bool) -> String {
    let labels = if has_head {
        "there is no test or val subset, and no label was evaluated out of fold.\n\
         Add a folder `test` or `val`, add a second label for each class, or set network.folds."
    } else {
        "there is no test subset, and no label was held out.\n\
         Add a folder `test`, or more labels: with at least 50, a fifth is held out (labels.validation)."
    };
    format!("no metrics: {labels}\n{}\n", uncalibrated_reason(why))
}

/// Describes the guarantees of `calmix predict` with its default options; empty without held-out labels.
pub fn guarantees(held_out: Option<&HeldOut>, kind: InputKind) -> String {
    let Some(held_out) = held_out.filter(|held_out| held_out.is_sound() && !held_out.is_empty()) else {
        return String::new();
    };
    let ModelOptions { coverage, precision, sets, .. } = ModelOptions::default();
    let groups = held_out.group_count();
    let groups = (groups < held_out.len()).then_some(groups as u64);
    let labels = counted_in_groups(held_out.len() as u64, "held-out label", groups);
    let threshold = match held_out.sets(sets, coverage) {
        Ok(PredictionSets::Marginal(rule)) => rule.threshold,
        Ok(PredictionSets::ByClass(_)) | Err(_) => None,
    };
    let sets = match threshold {
        Some(HeldOut::MAX_SCORE) => {
            "a prediction set contains all classes, because too many of these labels are the only ones of their class"
                .to_owned()
        }
        Some(0.0) => "a prediction set contains the most probable class alone".to_owned(),
        Some(threshold) => {
            format!(
                "a prediction set contains the top class and every class with probability at least {:.3}",
                1.0 - threshold
            )
        }
        None => format!("a prediction set contains all classes, because {labels} are too few"),
    };
    let answers = match held_out.answer_threshold(precision).ok().flatten() {
        Some(found) => format!(
            "it abstains below a confidence that {} of these labels reach, {} of them right",
            found.answered, found.right
        ),
        None => {
            format!("it abstains from every {}, because no threshold reaches this precision", kind.word())
        }
    };
    let coverage = 100.0 * coverage;
    let precision = 100.0 * precision;
    let unseen = match held_out.unseen_classes().len() as u64 {
        0 => String::new(),
        classes => {
            format!("  the only labels of {} count as wrong and uncovered\n", counted(classes, "class"))
        }
    };
    format!(
        "`calmix predict` by default, based on {labels}:\n  \
         {coverage:.0}% coverage: {sets}\n  {precision:.0}% precision: {answers}\n{unseen}"
    )
}

/// Describes the labels that a calibrator was fitted on.
pub fn fitted_by(map: &str, on: FittedOn, samples: u64) -> String {
    match on {
        FittedOn::HeldOut => format!("{map} fitted on {}", counted(samples, "held-out label")),
        FittedOn::ValidationSplit => {
            format!("{map} fitted on {} of the validation split", counted(samples, "label"))
        }
        FittedOn::OutOfFold => {
            format!(
                "{map} fitted on {}, each predicted by a head trained without it",
                counted(samples, "label")
            )
        }
        FittedOn::Later => format!("{map} fitted on {}", counted(samples, "new label")),
        FittedOn::LabelledCrossFit => {
            format!("{map} fitted on {}, because too few were held out", counted(samples, "training label"))
        }
    }
}

/// Explains why there is no calibrator, in two lines.
pub fn uncalibrated_reason(why: Option<&Uncalibrated>) -> String {
    let Some(Uncalibrated { held_out, min_labels, training_labels }) = why else {
        return "no temperature was fitted".to_owned();
    };
    let held_out = match held_out {
        0 => format!("no label was held out, and a fit needs at least {min_labels}"),
        1 => format!("only 1 label was held out, and a fit needs at least {min_labels}"),
        n => format!("only {n} labels were held out, and a fit needs at least {min_labels}"),
    };
    let training = match training_labels {
        TrainingLabels::TooFew => "there are too few training labels to use instead",
        TrainingLabels::NoHelp => "a fit on some of the training labels does not improve the others",
        TrainingLabels::MoreConfident => {
            "a fit on the training labels would only make the model more confident"
        }
    };
    format!("no temperature was fitted: {held_out};\n{training}")
}

/// Returns the evaluations of the result of a finished run.
pub fn of_result<'a>(result: &RunResult, events: &'a [Event]) -> Vec<&'a Evaluation> {
    latest(events, |evaluation| evaluation.step == result.step)
}

/// Returns the latest evaluation of each split; the out-of-fold one if there is no other.
pub fn latest(events: &[Event], wanted: impl Fn(&Evaluation) -> bool) -> Vec<&Evaluation> {
    let of = |split| {
        events.iter().rev().find_map(|event| match event {
            Event::Evaluation(evaluation)
                if evaluation.split == split && evaluation.model == EvalModel::Ema && wanted(evaluation) =>
            {
                Some(evaluation.as_ref())
            }
            _ => None,
        })
    };
    let evaluated: Vec<_> = [EvalSet::Validation, EvalSet::Test].into_iter().filter_map(of).collect();
    if evaluated.is_empty() { of(EvalSet::OutOfFold).into_iter().collect() } else { evaluated }
}

/// Shows the result of each selection rule of the recipe, one per line.
pub fn by_rule(result: &RunResult) -> String {
    let line = |(rule, selected): (&_, &Selected)| {
        let Selected { on, evaluations, chosen_on_test, samples, metrics, .. } = selected;
        let rule: calmix_recipe::Selection = *rule;
        let mark = if *chosen_on_test { ", selected on the test split (optimistic)" } else { "" };
        let of = if *evaluations > 1 { format!(" of {evaluations} evaluations") } else { String::new() };
        format!(
            "  {}{of}: {} error {}, {}{}{mark}\n",
            rule.word(),
            on.word(),
            percent(metrics.error, None),
            over_or_under(metrics.confidence_gap),
            ece_in_words(metrics.ece_15, *samples),
        )
    };
    // The table already shows the result of a single rule.
    if result.finished.selected.len() < 2 {
        return String::new();
    }
    let written = format!(
        "by selection rule (model.safetensors is the {}, selected by `{}`):\n",
        model_title(result.step),
        result.selection.word()
    );
    written + &result.finished.selected.iter().map(line).collect::<String>()
}

/// Returns the title of the metrics of a model after `step` steps; 0 if it was not trained in steps.
pub fn model_title(step: u64) -> String {
    match step {
        0 => "model".to_owned(),
        steps => format!("model after {}", counted(steps, "step")),
    }
}

/// Shows the most important metrics of one evaluation, without text.
pub fn short_table(evaluation: &Evaluation, kind: InputKind) -> String {
    let columns = MetricColumns::of(evaluation);
    // The Brier score repeats what error and NLL show.
    let rows = columns.rows().into_iter().filter(|(name, ..)| *name != BRIER);
    columns.table(&title_of(evaluation, kind), rows) + &empty_classes(evaluation, kind)
}

/// Says which part of the classes the balanced error leaves out.
fn empty_classes(evaluation: &Evaluation, kind: InputKind) -> String {
    match evaluation.empty_classes {
        0 => String::new(),
        1 => format!("  one class has no {}s here: the balanced error leaves it out\n", kind.word()),
        n => format!("  {n} classes have no {}s here: the balanced error leaves them out\n", kind.word()),
    }
}

fn title_of(evaluation: &Evaluation, kind: InputKind) -> String {
    let of = if evaluation.split == EvalSet::OutOfFold { "label" } else { kind.word() };
    format!("{}, {}", evaluation.split.word(), counted_in_groups(evaluation.samples, of, evaluation.groups))
}

fn evaluation_table(evaluation: &Evaluation, kind: InputKind) -> String {
    let mut text = MetricColumns::of(evaluation).with_words(&title_of(evaluation, kind));
    text += &empty_classes(evaluation, kind);
    text += &too_few(&evaluation.metrics, evaluation.observations(), kind);
    if evaluation.split == EvalSet::OutOfFold {
        text += "  each label is evaluated by a head trained without it\n";
    }
    if evaluation.calibrated.as_ref().is_some_and(|at| at.evaluated_by == EvaluatedBy::CrossFit) {
        text += &cross_fitted(kind);
    }
    text
}

/// Describes the cross-fit, by which labels evaluate the calibrator that they fitted.
fn cross_fitted(kind: InputKind) -> String {
    format!(
        "  the calibrator was fitted on these {}s, so each is evaluated by a fit without it\n",
        kind.word()
    )
}

/// The metrics of one set of samples, before and after calibration.
struct MetricColumns<'a> {
    /// The number of independent observations behind the intervals: samples, or their groups.
    samples: u64,
    raw: (&'a Metrics, Option<&'a Intervals>),
    calibrated: Option<(&'a Metrics, Option<&'a Intervals>)>,
    /// The heading of the column after calibration.
    heading: Option<String>,
    /// Whether the calibrator never changes a predicted label.
    keeps_labels: bool,
}

impl<'a> MetricColumns<'a> {
    fn of(evaluation: &'a Evaluation) -> Self {
        let at = evaluation.calibrated.as_ref();
        Self {
            samples: evaluation.observations(),
            raw: (&evaluation.metrics, evaluation.intervals.as_ref()),
            calibrated: at.map(|at| (&at.metrics, at.intervals.as_ref())),
            heading: at.map(|at| match at.temperature {
                Some(temperature) => format!("at temperature {:.2}", temperature.value()),
                None => format!("with {}", at.kind.name()),
            }),
            keeps_labels: at.is_none_or(|at| at.kind != CalibratorKind::Vector),
        }
    }

    fn rows(&self) -> Vec<MetricRow> {
        let &Self { samples, raw, calibrated, keeps_labels, .. } = self;
        let both = |name, show: &dyn Fn(&Metrics, Option<&Intervals>) -> String| -> MetricRow {
            (name, show(raw.0, raw.1), calibrated.map(|(metrics, intervals)| show(metrics, intervals)))
        };
        let error = |metrics: &Metrics| percent(metrics.error, exact_error(metrics, samples));
        let interval = |of: Option<&Intervals>, pick: fn(&Intervals) -> Interval| of.map(pick);
        let after =
            calibrated.map(|(metrics, _)| if keeps_labels { "unchanged".to_owned() } else { error(metrics) });
        let mut rows = vec![("error", error(raw.0), after)];
        let balanced = |(metrics, intervals): (&Metrics, Option<&Intervals>)| {
            let error = metrics.balanced_error?;
            // Of even classes, it repeats the error.
            let is_uneven = (error - metrics.error).abs() >= SHOWN_DIFFERENCE;
            is_uneven.then(|| percent(error, intervals.and_then(|intervals| intervals.balanced_error)))
        };
        if let Some(error) = balanced(raw) {
            let after =
                if keeps_labels { Some("unchanged".to_owned()) } else { calibrated.and_then(balanced) };
            rows.push(("balanced error", error, after.filter(|_| calibrated.is_some())));
        }
        rows.push(both("confidence gap, points", &|metrics, _| signed_gap(metrics, samples)));
        if samples >= MIN_SAMPLES_FOR_ECE {
            rows.push(both("ECE, 15 bins", &|metrics, within| {
                percent(metrics.ece_15, interval(within, |of| of.ece_15))
            }));
        }
        rows.push(both("NLL", &|metrics, within| decimal(metrics.nll, interval(within, |of| of.nll))));
        rows.push(both(BRIER, &|metrics, within| decimal(metrics.brier, interval(within, |of| of.brier))));
        rows
    }

    fn table(&self, title: &str, rows: impl IntoIterator<Item = MetricRow>) -> String {
        // With a number of groups, the title is wider than the names of the metrics.
        let width = title.chars().count().max(NAME_WIDTH);
        let mut table = line(title, width, "uncalibrated", self.heading.as_deref());
        for (name, raw, at) in rows {
            table += &line(&format!("  {name}"), width, &raw, at.as_deref());
        }
        table
    }

    /// Formats the table, and describes the confidence before and after calibration.
    fn with_words(&self, title: &str) -> String {
        let Self { samples, raw, calibrated, heading, .. } = self;
        let mut sentences = vec![confidence_in_words(raw.0, *samples)];
        if let Some(((metrics, _), heading)) = calibrated.zip(heading.as_ref()) {
            sentences.push(format!("{heading}, {}", confidence_in_words(metrics, *samples)));
        }
        let lines = sentences.iter().map(|sentence| format!("  {sentence}\n"));
        self.table(title, self.rows()) + &lines.collect::<String>()
    }
}

fn exact_error(metrics: &Metrics, samples: u64) -> Option<Interval> {
    ExactIntervals::of(metrics, samples, LEVEL).map(|intervals| intervals.error)
}

/// Warns that an estimate has too few samples, and how many more it needs.
fn too_few(metrics: &Metrics, samples: u64, kind: InputKind) -> String {
    let error = exact_error(metrics, samples);
    let Some(Interval { low, high }) = error.filter(|_| samples < MIN_SAMPLES_TO_ASSESS) else {
        return String::new();
    };
    let missing = counted(MIN_SAMPLES_TO_ASSESS - samples, &format!("more labelled {}", kind.word()));
    format!(
        "  too few {}s for a reliable estimate: the error may be anywhere from {:.0}% to {:.0}%;\n  \
         {missing} would make {MIN_SAMPLES_TO_ASSESS}\n",
        kind.word(),
        100.0 * low,
        100.0 * high
    )
}

/// Shows the metrics of the labels that a calibrator was fitted on, before and after it.
pub fn calibration_table(map: &FittedCalibrator, kind: InputKind) -> String {
    let name = map
        .temperature()
        .map_or(map.calibrator.kind().name().to_owned(), |t| format!("temperature {:.2}", t.value()));
    let heading = format!("{}{name}", if map.temperature().is_some() { "at " } else { "with " });
    let title = format!("new labels, {}", counted(map.samples, kind.word()));
    let keeps_labels = !map.calibrator.may_change_labels();
    let columns = MetricColumns {
        samples: map.samples,
        raw: (&map.raw, None),
        calibrated: Some((&map.calibrated, None)),
        heading: Some(heading),
        keeps_labels,
    };
    let table = columns.with_words(&title);
    let few = too_few(&map.raw, map.samples, kind);
    let changed = (!keeps_labels).then(|| {
        let changed = grouped(map.changed_labels);
        let all = counted(map.samples, kind.word());
        format!("  vector scaling changes the predicted label of {changed} of {all}\n")
    });
    let by = format!("{}\n", fitted_by(map.calibrator.kind().name(), map.fitted_on, map.samples));
    [table, few, cross_fitted(kind), changed.unwrap_or_default(), by].concat()
}

fn calibrator_name(calibrated: &Calibrated) -> String {
    let name = calibrated.kind.name();
    if calibrated.kind == CalibratorKind::Vector {
        format!("{name}, which can change predicted labels,")
    } else {
        name.to_owned()
    }
}

/// Shows the error of the pseudo-labels at the end of a run, if the true classes are known.
pub fn pseudo_labels(result: &RunResult) -> String {
    result.finished.pseudo.as_ref().map(|pseudo| pseudo_in_words(pseudo) + "\n").unwrap_or_default()
}

fn line(name: &str, width: usize, raw: &str, at: Option<&str>) -> String {
    format!("{}\n", format!("{name:<width$}  {raw:<24}  {}", at.unwrap_or_default()).trim_end())
}

#[cfg(test)]
mod tests {
    use calmix_metrics::evaluate::evaluate;
    use calmix_metrics::predictions::Predictions;

    use super::*;

    /// Predictions of class 0 for every label, among three classes.
    fn evaluation(labels: Vec<u32>) -> Evaluation {
        let predictions = Predictions {
            step: 0,
            split: EvalSet::Test,
            model: EvalModel::Ema,
            classes: ["a", "b", "c"].map(str::to_owned).to_vec(),
            ids: (0..labels.len() as u64).collect(),
            logits: [1.0, 0.0, 0.0].repeat(labels.len()),
            labels,
            groups: Vec::new(),
        };
        evaluate(&predictions, None, None).unwrap()
    }

    #[test]
    fn balanced_error_is_shown_for_uneven_classes() {
        let even = short_table(&evaluation(vec![0, 1, 2]), InputKind::Vector);
        assert!(even.contains("  error ") && !even.contains("balanced"), "{even}");
        let uneven = short_table(&evaluation(vec![0, 0, 0, 1, 2]), InputKind::Vector);
        let row = uneven.lines().find(|line| line.starts_with("  balanced error ")).unwrap();
        assert!(row.ends_with(" 66.7%"), "{uneven}");
    }

    #[test]
    fn empty_classes_are_left_out_with_a_sentence() {
        let one = short_table(&evaluation(vec![0, 0, 1]), InputKind::Vector);
        assert!(one.contains("  one class has no vectors here: the balanced error leaves it out\n"), "{one}");
        assert!(one.contains("  balanced error") && one.contains("50.0%"), "{one}");
        let two = short_table(&evaluation(vec![0, 0]), InputKind::Vector);
        assert!(
            two.contains("  2 classes have no vectors here: the balanced error leaves them out\n"),
            "{two}"
        );
    }
}
