//! The heads of a run on vectors, side by side, and whether samples without labels helped.

use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::metrics::ENOUGH_FOR_ECE;
use calmix_metrics::predictions::EvalSet;
use calmix_metrics::stats::Estimate;
use calmix_run::result::{HeadCandidate, HeadChoice, HeadName};

use crate::format::percent;

/// The width of the column of names, unless one of them is longer.
const NAMES: usize = 26;

/// Shows the heads after calibration, which of them is the model, and why.
pub fn heads(choice: &HeadChoice) -> String {
    let HeadChoice { chosen_on, nll_difference, candidates } = choice;
    let tested = [EvalSet::Test, EvalSet::Validation, EvalSet::OutOfFold]
        .into_iter()
        .find(|&split| candidates.iter().any(|head| of(head, split).is_some()));
    let heading = tested.map_or([String::new(), String::new()], |split| {
        [format!("{} error", split.name()), "ECE, calibrated".to_owned()]
    });
    let names: Vec<String> = candidates.iter().map(row_name).collect();
    let width = names.iter().map(|name| name.chars().count()).fold(NAMES, usize::max);
    let count = if candidates.len() == 2 { "two".to_owned() } else { candidates.len().to_string() };
    let title = format!("{count} heads, same labels");
    let mut text = line(&title, width, &format!("{} NLL", chosen_on.name()), &heading);
    for (head, name) in candidates.iter().zip(&names) {
        let nll = head.nll.map_or("unknown".to_owned(), |nll| format!("{nll:.3}"));
        let seen = tested.and_then(|split| of(head, split));
        text += &line(name, width, &nll, &seen.map_or([String::new(), String::new()], error_and_ece));
    }
    let kept = choice.kept().unwrap_or(HeadName::Recipe);
    let labels = chosen_on.name();
    let Some(difference) = nll_difference.as_ref() else {
        let kept = kept.in_words();
        return text + &format!("  too few {labels} labels to compare the heads, so {kept} is the model\n");
    };
    if choice.is_of_one_vector() {
        return text + &one_vector_assessment(kept, labels, difference);
    }
    text + &assessment(kept, labels, difference)
}

fn row_name(head: &HeadCandidate) -> String {
    format!("  {}{}", head.name.title(), if head.kept { ", kept" } else { "" })
}

/// Says which of two heads is the model, and which labels decided it.
fn assessment(kept: HeadName, labels: &str, difference: &Estimate) -> String {
    let Estimate { n, estimate, low, high, level } = difference;
    format!(
        "  {} is the model: on {n} {labels} labels, the NLL of the recipe's head\n  minus that of the labels alone is \
         {estimate:+.3} ({:.0}% confidence interval {low:+.3} to {high:+.3})\n",
        kept.in_words(),
        100.0 * level
    )
}

/// Says which of several heads is the model, and whether samples without labels helped.
fn one_vector_assessment(kept: HeadName, labels: &str, difference: &Estimate) -> String {
    let Estimate { n, estimate, low, high, level } = difference;
    let helped = if *high < 0.0 { "helped" } else { "did not clearly help" };
    format!(
        "  {} is the model: it has the lowest NLL on {n} {labels} labels\n  Unlabelled data {helped}: the lowest NLL with \
         it, minus that of the labels alone, is\n  {estimate:+.3} ({:.0}% confidence interval {low:+.3} to {high:+.3})\n",
        kept.in_words(),
        100.0 * level
    )
}

fn error_and_ece(seen: &Evaluation) -> [String; 2] {
    let at = seen.calibrated.as_ref().map_or(&seen.metrics, |at| &at.metrics);
    let ece =
        if seen.samples >= ENOUGH_FOR_ECE { percent(at.ece_15, None) } else { "too few samples".into() };
    [percent(seen.metrics.error, None), ece]
}

fn line(name: &str, width: usize, nll: &str, [error, ece]: &[String; 2]) -> String {
    format!("{}\n", format!("{name:<width$}  {nll:<16}  {error:<18}  {ece}").trim_end())
}

fn of(head: &HeadCandidate, split: EvalSet) -> Option<&Evaluation> {
    head.evaluations.iter().find(|seen| seen.split == split)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(kept: HeadName, high: f64) -> HeadChoice {
        let names = [
            HeadName::LogisticRegression,
            HeadName::Em,
            HeadName::BalancedEm,
            HeadName::LrEm,
            HeadName::Recipe,
        ];
        let candidate = |name| HeadCandidate {
            name,
            kept: name == kept,
            nll: Some(0.875),
            temperature: None,
            evaluations: Vec::new(),
        };
        HeadChoice {
            chosen_on: EvalSet::OutOfFold,
            nll_difference: Some(Estimate { n: 40, estimate: -0.31, low: -0.5, high, level: 0.95 }),
            candidates: names.into_iter().map(candidate).collect(),
        }
    }

    #[test]
    fn table_of_five_heads_says_whether_unlabelled_data_helped() {
        let text = heads(&choice(HeadName::BalancedEm, -0.12));
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[0], "5 heads, same labels                  out-of-fold NLL");
        assert_eq!(rows[1], "  logistic regression (labels alone)  0.875");
        assert_eq!(rows[3], "  balanced EM, kept                   0.875");
        assert_eq!(rows[6], "  balanced EM is the model: it has the lowest NLL on 40 out-of-fold labels");
        assert!(rows[7].starts_with("  Unlabelled data helped: "), "{text}");
        assert_eq!(rows[8], "  -0.310 (95% confidence interval -0.500 to -0.120)");
        let unclear = heads(&choice(HeadName::LogisticRegression, 0.02));
        assert!(unclear.contains("Unlabelled data did not clearly help: "), "{unclear}");
        let unknown = HeadChoice { nll_difference: None, ..choice(HeadName::LogisticRegression, 0.0) };
        assert!(heads(&unknown).contains("so logistic regression on the labels alone is the model"));
    }
}
