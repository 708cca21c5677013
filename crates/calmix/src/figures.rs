//! Tables of figures: error and calibration with intervals, before and after temperature scaling.

use calmix::run::evaluate::{FittedOn, Limits, Selected};
use calmix::run::events::{EvalModel, EvalSet, Evaluation, Event};
use calmix::run::result::RunResult;

use crate::format::{confidence_in_words, counted, decimal, over_or_under, percent, pseudo_in_words};

/// The name of a figure, its value, and its value at the fitted temperature.
type FigureRow = (&'static str, String, Option<String>);

/// The figures of evaluations, split by split; `None` without evaluations.
pub(crate) fn table(evaluations: &[&Evaluation], is_final: bool) -> Option<String> {
    let tables = evaluations.iter().map(|seen| of_one(seen)).collect::<Vec<_>>();
    let last = evaluations.last()?;
    let mut notes = Vec::new();
    if let Some(intervals) = &last.intervals {
        let resamples = counted(intervals.replicates, "resample");
        notes.push(format!("in brackets: {:.0} % bootstrap intervals, {resamples}", 100.0 * intervals.level));
    }
    match &last.scaled {
        Some(scaled) => {
            let on = match scaled.fitted_on {
                FittedOn::HeldOut => "held-out label",
                FittedOn::LabelledCrossFit => "training label",
            };
            notes.push(format!("temperature fitted on {}", counted(scaled.fitted_samples, on)));
        }
        None if is_final => {
            notes.push(
                "no temperature: too few held-out labels, and the model fits its training labels too well"
                    .to_owned(),
            );
        }
        None => notes.push("the run computes intervals and a temperature at its end".to_owned()),
    }
    Some(format!("{}({})\n", tables.join("\n"), notes.join("; ")))
}

/// The evaluations of the result of a finished run.
pub(crate) fn of_result<'a>(result: &RunResult, events: &'a [Event]) -> Vec<&'a Evaluation> {
    latest(events, |seen| seen.step == result.step)
}

/// The latest evaluation of each split.
pub(crate) fn latest(events: &[Event], wanted: impl Fn(&Evaluation) -> bool) -> Vec<&Evaluation> {
    let of = |split| {
        events.iter().rev().find_map(|event| match event {
            Event::Evaluation(seen)
                if seen.split == split && seen.model == EvalModel::Ema && wanted(seen) =>
            {
                Some(seen.as_ref())
            }
            _ => None,
        })
    };
    [EvalSet::Validation, EvalSet::Test].into_iter().filter_map(of).collect()
}

/// The result of each selection rule of the recipe, one per line.
pub(crate) fn by_rule(result: &RunResult) -> String {
    let line = |(rule, selected): (&_, &Selected)| {
        let Selected { on, evaluations, chosen_on_test, figures, .. } = selected;
        let rule: calmix::run::evaluate::Selection = *rule;
        let mark = if *chosen_on_test { ", selected on the test split (optimistic)" } else { "" };
        let of = if *evaluations > 1 { format!(" of {evaluations} evaluations") } else { String::new() };
        format!(
            "{}{of}: {} error {}, ECE {} (15 bins), {}{mark}\n",
            rule.name(),
            on.name(),
            percent(figures.error, None),
            percent(figures.ece_15, None),
            over_or_under(figures.confidence_gap)
        )
    };
    // The table already shows the result of a single rule.
    if result.finished.selected.len() < 2 {
        return String::new();
    }
    result.finished.selected.iter().map(line).collect()
}

fn of_one(seen: &Evaluation) -> String {
    let (raw, scaled) = (&seen.figures, seen.scaled.as_ref());
    let limits = |pick: fn(&calmix::run::evaluate::Intervals) -> Limits| {
        let within = |of: Option<&calmix::run::evaluate::Intervals>| of.map(pick);
        (within(seen.intervals.as_ref()), within(scaled.and_then(|scaled| scaled.intervals.as_ref())))
    };
    let both = |name,
                show: fn(f64, Option<Limits>) -> String,
                raw: f64,
                at: Option<f64>,
                limits: (_, _)|
     -> FigureRow { (name, show(raw, limits.0), at.map(|figure| show(figure, limits.1))) };
    let at = scaled.map(|scaled| &scaled.figures);
    let rows = [
        // A temperature never changes which class wins.
        ("error", percent(raw.error, limits(|of| of.error).0), at.map(|_| "unchanged".to_owned())),
        both("ECE, 15 bins", percent, raw.ece_15, at.map(|at| at.ece_15), limits(|of| of.ece_15)),
        both("NLL", decimal, raw.nll, at.map(|at| at.nll), limits(|of| of.nll)),
        both("Brier", decimal, raw.brier, at.map(|at| at.brier), limits(|of| of.brier)),
    ];
    let title = format!("{}, {}", seen.split.name(), counted(seen.samples, "image"));
    let heading = scaled.map(|scaled| format!("at temperature {:.2}", scaled.temperature.value()));
    let rows = rows.into_iter().map(|(name, raw, at)| line(&format!("  {name}"), &raw, at.as_deref()));
    let table = line(&title, "uncalibrated", heading.as_deref()) + &rows.collect::<String>();
    let scaled = scaled.map(|scaled| {
        format!(
            "  at temperature {:.2}, {}\n",
            scaled.temperature.value(),
            confidence_in_words(&scaled.figures)
        )
    });
    format!("{table}  {}\n{}", confidence_in_words(raw), scaled.unwrap_or_default())
}

/// How true the pseudo-labels were at the end of a run, where their classes are known.
pub(crate) fn pseudo_labels(result: &RunResult) -> String {
    result.finished.pseudo.as_ref().map(|pseudo| pseudo_in_words(pseudo) + "\n").unwrap_or_default()
}

fn line(name: &str, raw: &str, at: Option<&str>) -> String {
    format!("{}\n", format!("{name:<26}  {raw:<24}  {}", at.unwrap_or_default()).trim_end())
}
