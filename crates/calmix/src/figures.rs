//! Figures as tables: how good a model is, how true its confidence, and how sure that is.

use calmix::train::evaluate::{FittedOn, Limits, Selected};
use calmix::train::events::{Evaluation, Event, Model, Split};
use calmix::train::trainer::RunResult;

use crate::number::{counted, percent, plain};

/// One figure as it is, and at the fitted temperature.
type Row = (&'static str, String, Option<String>);

/// The figures of some evaluations, split by split; none where there are none. Final ones are more thorough.
pub(crate) fn table(evaluations: &[&Evaluation], is_final: bool) -> Option<String> {
    let judged = evaluations.iter().map(|seen| of_one(seen)).collect::<Vec<_>>();
    let last = evaluations.last()?;
    let mut notes = Vec::new();
    if let Some(intervals) = &last.intervals {
        let resamples = counted(intervals.replicates, "resample");
        notes.push(format!("in brackets: {:.0} % intervals from {resamples}", 100.0 * intervals.level));
    }
    match &last.scaled {
        Some(scaled) => {
            let on = match scaled.fitted_on {
                FittedOn::HeldOut => "held-out label",
                FittedOn::LabelledCrossFit => "training label",
            };
            notes.push(format!("the temperature was fitted on {}", counted(scaled.fitted_samples, on)));
        }
        None if is_final => {
            notes.push("no temperature: the held-out labels are too few, and those it was trained on are learnt too well".to_owned());
        }
        None => notes.push("intervals and a temperature come at the end of the run".to_owned()),
    }
    Some(format!("{}({})\n", judged.join("\n"), notes.join("; ")))
}

/// Of a run that is finished, the evaluations of its result.
pub(crate) fn of_result<'a>(result: &RunResult, events: &'a [Event]) -> Vec<&'a Evaluation> {
    latest(events, |seen| seen.step == result.step)
}

/// The latest evaluations of a run, one a split.
pub(crate) fn latest(events: &[Event], wanted: impl Fn(&Evaluation) -> bool) -> Vec<&Evaluation> {
    let of = |split| {
        events.iter().rev().find_map(|event| match event {
            Event::Evaluation(seen) if seen.split == split && seen.model == Model::Ema && wanted(seen) => {
                Some(seen.as_ref())
            }
            _ => None,
        })
    };
    [Split::Validation, Split::Test].into_iter().filter_map(of).collect()
}

/// The results by the rules that were asked for, a line each.
pub(crate) fn by_rule(result: &RunResult) -> String {
    let line = |(rule, selected): (&_, &Selected)| {
        let Selected { on, evaluations, chosen_on_test, figures, .. } = selected;
        let rule: calmix::train::evaluate::Selection = *rule;
        let mark = if *chosen_on_test { ", chosen on the test split: it flatters" } else { "" };
        let of = if *evaluations > 1 { format!(" of {evaluations} evaluations") } else { String::new() };
        format!(
            "{}{of}: {} error {}, ECE {}{mark}\n",
            rule.name(),
            on.name(),
            percent(figures.error, None),
            percent(figures.ece_15, None)
        )
    };
    // One rule says what the table says.
    if result.finished.selected.len() < 2 {
        return String::new();
    }
    result.finished.selected.iter().map(line).collect()
}

fn of_one(seen: &Evaluation) -> String {
    let (raw, scaled) = (&seen.figures, seen.scaled.as_ref());
    let limits = |pick: fn(&calmix::train::evaluate::Intervals) -> Limits| {
        let within = |of: Option<&calmix::train::evaluate::Intervals>| of.map(pick);
        (within(seen.intervals.as_ref()), within(scaled.and_then(|scaled| scaled.intervals.as_ref())))
    };
    let both =
        |name, show: fn(f64, Option<Limits>) -> String, raw: f64, at: Option<f64>, limits: (_, _)| -> Row {
            (name, show(raw, limits.0), at.map(|figure| show(figure, limits.1)))
        };
    let at = scaled.map(|scaled| &scaled.figures);
    let rows = [
        // A temperature never changes which class wins.
        ("error", percent(raw.error, limits(|of| of.error).0), at.map(|_| "the same".to_owned())),
        both("ECE", percent, raw.ece_15, at.map(|at| at.ece_15), limits(|of| of.ece_15)),
        both("NLL", plain, raw.nll, at.map(|at| at.nll), limits(|of| of.nll)),
        both("Brier", plain, raw.brier, at.map(|at| at.brier), limits(|of| of.brier)),
    ];
    let title = format!("{}, {}", seen.split.name(), counted(seen.samples, "image"));
    let heading = scaled.map(|scaled| format!("at temperature {:.2}", scaled.temperature.value()));
    let rows = rows.into_iter().map(|(name, raw, at)| line(&format!("  {name}"), &raw, at.as_deref()));
    line(&title, "as it is", heading.as_deref()) + &rows.collect::<String>()
}

fn line(name: &str, raw: &str, at: Option<&str>) -> String {
    format!("{}\n", format!("{name:<26}  {raw:<24}  {}", at.unwrap_or_default()).trim_end())
}
