//! The two heads of a run on frozen features, side by side: the recipe's, and one trained on the labels alone.

use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::metrics::ENOUGH_FOR_ECE;
use calmix_metrics::predictions::EvalSet;
use calmix_metrics::stats::Estimate;
use calmix_run::result::{HeadCandidate, HeadChoice, HeadName};

use crate::format::percent;

/// Shows both heads after calibration, which of them is the model, and why.
pub fn heads(choice: &HeadChoice) -> String {
    let HeadChoice { chosen_on, nll_difference, candidates } = choice;
    let tested = [EvalSet::Test, EvalSet::Validation, EvalSet::OutOfFold]
        .into_iter()
        .find(|&split| candidates.iter().any(|head| of(head, split).is_some()));
    let heading = tested.map_or([String::new(), String::new()], |split| {
        [format!("{} error", split.name()), "ECE, calibrated".to_owned()]
    });
    let mut text = line("two heads, same labels", &format!("{} NLL", chosen_on.name()), &heading);
    for head in candidates {
        let what = match head.name {
            HeadName::Recipe => "the recipe's",
            HeadName::LabelsAlone => "labels alone",
        };
        let name = format!("  {what}{}", if head.kept { ", kept" } else { "" });
        let nll = head.nll.map_or("unknown".to_owned(), |nll| format!("{nll:.3}"));
        let seen = tested.and_then(|split| of(head, split));
        text += &line(&name, &nll, &seen.map_or([String::new(), String::new()], error_and_ece));
    }
    let kept = choice.kept().unwrap_or(HeadName::Recipe);
    text + &assessment(kept, *chosen_on, nll_difference.as_ref())
}

/// Says which head is the model, and which labels decided it.
fn assessment(kept: HeadName, chosen_on: EvalSet, difference: Option<&Estimate>) -> String {
    let labels = chosen_on.name();
    let Some(Estimate { n, estimate, low, high, level }) = difference else {
        return format!(
            "  too few {labels} labels to compare the heads, so the recipe's head is the model\n"
        );
    };
    format!(
        "  {} is the model: on {n} {labels} labels, the NLL of the recipe's head\n  minus that of the labels alone is \
         {estimate:+.3} ({:.0}% confidence interval {low:+.3} to {high:+.3})\n",
        kept.in_words(),
        100.0 * level
    )
}

fn error_and_ece(seen: &Evaluation) -> [String; 2] {
    let at = seen.calibrated.as_ref().map_or(&seen.metrics, |at| &at.metrics);
    let ece = if seen.samples >= ENOUGH_FOR_ECE { percent(at.ece_15, None) } else { "too few images".into() };
    [percent(seen.metrics.error, None), ece]
}

fn line(name: &str, nll: &str, [error, ece]: &[String; 2]) -> String {
    format!("{}\n", format!("{name:<26}  {nll:<16}  {error:<18}  {ece}").trim_end())
}

fn of(head: &HeadCandidate, split: EvalSet) -> Option<&Evaluation> {
    head.evaluations.iter().find(|seen| seen.split == split)
}
