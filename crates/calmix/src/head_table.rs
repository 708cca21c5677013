//! The two heads of a run on frozen features, side by side: the recipe's, and one that learnt from the labels alone.

use calmix::core::stats::Interval;
use calmix::run::evaluate::ENOUGH_FOR_ECE;
use calmix::run::events::{EvalSet, Evaluation};
use calmix::run::result::{HeadChoice, HeadFigures, KeptHead};

use crate::format::percent;

/// Both heads at their temperatures, which of them is the model, and whether semi-supervision helped.
pub(crate) fn heads(choice: &HeadChoice) -> String {
    let HeadChoice { kept, nll_difference, semi_supervised, supervised } = choice;
    let judged =
        [EvalSet::Test, EvalSet::Validation].into_iter().find(|&split| of(supervised, split).is_some());
    let heading = judged.map_or([String::new(), String::new()], |split| {
        [format!("{} error", split.name()), "ECE, at temperature".to_owned()]
    });
    let mut text = line("two heads, same labels", "out-of-fold", &heading);
    for (what, head, figures) in [
        ("semi-supervised", KeptHead::SemiSupervised, semi_supervised),
        ("labels alone", KeptHead::Supervised, supervised),
    ] {
        let name = format!("  {what}{}", if head == *kept { ", kept" } else { "" });
        let nll = figures.out_of_fold_nll.map_or("unknown".to_owned(), |nll| format!("NLL {nll:.3}"));
        let seen = judged.and_then(|split| of(figures, split));
        text += &line(&name, &nll, &seen.map_or([String::new(), String::new()], error_and_ece));
    }
    text + &verdict(nll_difference.as_ref())
}

/// Whether the unlabelled images helped.
fn verdict(difference: Option<&Interval>) -> String {
    let by = difference.map_or(String::new(), |at| {
        let Interval { estimate, low, high, level, .. } = at;
        format!(": NLL {estimate:+.3}, {:.0} % interval {low:+.3} to {high:+.3}", 100.0 * level)
    });
    match HeadChoice::helped(difference) {
        Some(true) => format!("  the unlabelled images helped{by}\n"),
        Some(false) => format!("  the unlabelled images did not help{by}; the labels alone are the model\n"),
        None => format!("  too few labels to say whether the unlabelled images helped{by}\n"),
    }
}

fn error_and_ece(seen: &Evaluation) -> [String; 2] {
    let at = seen.calibrated.as_ref().map_or(&seen.figures, |at| &at.figures);
    let ece = if seen.samples >= ENOUGH_FOR_ECE { percent(at.ece_15, None) } else { "too few images".into() };
    [percent(seen.figures.error, None), ece]
}

fn line(name: &str, nll: &str, [error, ece]: &[String; 2]) -> String {
    format!("{}\n", format!("{name:<26}  {nll:<12}  {error:<12}  {ece}").trim_end())
}

fn of(figures: &HeadFigures, split: EvalSet) -> Option<&Evaluation> {
    figures.evaluations.iter().find(|seen| seen.split == split)
}
