//! The heads of a run side by side, and whether unlabelled samples helped.

use calmix_io::text::wrapped;
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::metrics::MIN_SAMPLES_FOR_ECE;
use calmix_metrics::predictions::EvalSet;
use calmix_metrics::stats::Estimate;
use calmix_metrics::stats::student_t::upper_quantile;
use calmix_run::result::{HeadCandidate, HeadChoice, HeadName};

use crate::output::format::{grouped, percent};

/// The width of the name column, unless a name is longer.
const NAME_WIDTH: usize = 26;

/// Shows the calibrated metrics of the heads, and which head is the model and why.
pub fn heads(choice: &HeadChoice) -> String {
    let HeadChoice { chosen_on, candidates, .. } = choice;
    let tested = [EvalSet::Test, EvalSet::Validation, EvalSet::OutOfFold]
        .into_iter()
        .find(|&split| candidates.iter().any(|head| of(head, split).is_some()));
    let heading = tested.map_or([String::new(), String::new()], |split| {
        [format!("{} error", split.word()), "ECE, calibrated".to_owned()]
    });
    let names: Vec<String> = candidates.iter().map(row_name).collect();
    let width = names.iter().map(|name| name.chars().count()).fold(NAME_WIDTH, usize::max);
    let count = if candidates.len() == 2 { "two".to_owned() } else { candidates.len().to_string() };
    let title = format!("{count} heads, same labels");
    let mut text = line(&title, width, &format!("{} NLL", chosen_on.word()), &heading);
    for (head, name) in candidates.iter().zip(&names) {
        let nll = nll_text(head.nll);
        let evaluation = tested.and_then(|split| of(head, split));
        text += &line(name, width, &nll, &evaluation.map_or([String::new(), String::new()], error_and_ece));
    }
    text + "  " + &wrapped(&kept_in_words(choice), 2, 2) + "\n"
}

/// Explains in one sentence which head is the model, and why.
pub fn kept_in_words(choice: &HeadChoice) -> String {
    let kept = choice.kept().unwrap_or(HeadName::Recipe);
    let model = format!("{} is the model", capitalised(kept.in_words()));
    let labels = choice.chosen_on.word();
    let alone = choice.candidates.iter().find(|head| head.name.is_labels_alone());
    let pair = choice.candidates.iter().find(|head| head.kept).zip(alone);
    let known = choice.nll_difference.as_ref().zip(pair);
    let Some((difference, (kept, alone))) = known else {
        return format!("{model}, because there are too few {labels} labels to compare the heads.");
    };
    let is_grouped = of(kept, choice.chosen_on).is_some_and(|evaluation| evaluation.groups.is_some());
    let groups_of = if is_grouped { "groups of " } else { "" };
    let on = format!("on {} {groups_of}{labels} labels", grouped(difference.n as u64));
    if choice.has_one_vector() {
        return format!("{model}: {}.", explain_lowest_nll(choice, kept, alone, difference, &on));
    }
    let own = choice.candidates.iter().find(|head| head.name == HeadName::Recipe).unwrap_or(kept);
    format!("{model}: {}.", explain_choice_of_two(own, alone, difference, &on))
}

/// Explains why the model is the configured head or the one on the labels alone, which has to be better by more than a standard
/// error, or by more than two if there are many unlabelled samples.
fn explain_choice_of_two(
    own: &HeadCandidate,
    alone: &HeadCandidate,
    difference: &Estimate,
    on: &str,
) -> String {
    let own_nll = nll_text(own.nll);
    let alone_nll = nll_text(alone.nll);
    // Subtract the rounded numbers, so that the sentence adds up.
    let shown = shown_difference(own.nll, alone.nll);
    let error = standard_error(difference);
    let errors = difference.estimate.abs() / error;
    let by = format!("{shown:.3}, {errors:.1} standard errors");
    if alone.kept {
        format!("its NLL {on} is {alone_nll}, lower than the {own_nll} of the recipe's head by {by}")
    } else if difference.estimate <= 0.0 {
        format!(
            "its NLL {on} is {own_nll}, not above the {alone_nll} of the head trained on the labels alone"
        )
    } else {
        // Reconstruct the limit that was applied: had it been one, the labels alone would have been selected between one and two.
        let needed = if errors > 1.0 { "2 with so many unlabelled samples" } else { "more than 1" };
        format!(
            "its NLL {on} is {own_nll}, higher than the {alone_nll} of the head trained on the labels alone, but only by {by} \
             (it takes {needed})"
        )
    }
}

/// Explains which head for one vector per sample is the model, and whether unlabelled samples helped.
fn explain_lowest_nll(
    choice: &HeadChoice,
    kept: &HeadCandidate,
    alone: &HeadCandidate,
    difference: &Estimate,
    on: &str,
) -> String {
    let kept_nll = nll_text(kept.nll);
    let nll = |head: &&HeadCandidate| head.nll.unwrap_or(f64::MAX);
    let lowest = choice.candidates.iter().min_by(|a, b| nll(a).total_cmp(&nll(b))).unwrap_or(kept);
    // The labels alone have to be better by more than a standard error.
    let why = if lowest.nll < kept.nll {
        let other = lowest.name.in_words();
        let nll = nll_text(lowest.nll);
        format!("its NLL {on} is {kept_nll}, not clearly above the lowest, {nll} of {other}")
    } else {
        format!("its NLL {on} is the lowest, {kept_nll}")
    };
    let others = choice.candidates.iter().filter(|head| !head.name.is_labels_alone() && head.nll.is_some());
    let best = others.min_by(|a, b| a.nll.unwrap_or(f64::MAX).total_cmp(&b.nll.unwrap_or(f64::MAX)));
    if alone.kept {
        let other = best.map(|head| format!(" ({} with unlabelled data)", nll_text(head.nll)));
        return format!("{why}{}; unlabelled data did not help", other.unwrap_or_default());
    }
    let helped = if difference.high < 0.0 { "helped" } else { "did not clearly help" };
    let alone = nll_text(alone.nll);
    let Estimate { low, high, level, .. } = difference;
    format!(
        "{why}; unlabelled data {helped}: the labels alone have {alone} ({:.0}% CI of the difference {low:+.3} to \
         {high:+.3})",
        100.0 * level
    )
}

fn nll_text(nll: Option<f64>) -> String {
    nll.map_or("unknown".to_owned(), |nll| format!("{nll:.3}"))
}

/// Returns the absolute difference of two numbers after rounding to the three digits that are shown.
fn shown_difference(first: Option<f64>, second: Option<f64>) -> f64 {
    let thousandths = |number: Option<f64>| (1_000.0 * number.unwrap_or_default()).round();
    (thousandths(first) - thousandths(second)).abs() / 1_000.0
}

/// Recovers the standard error of a mean difference from its interval.
fn standard_error(difference: &Estimate) -> f64 {
    let &Estimate { n, low, high, level, .. } = difference;
    let quantile = upper_quantile(0.5 * (1.0 - level), n.saturating_sub(1) as f64);
    // An interval needs at least two labels, which have a quantile.
    0.5 * (high - low) / quantile.unwrap_or(f64::INFINITY)
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn row_name(head: &HeadCandidate) -> String {
    format!("  {}{}", head.name.title(), if head.kept { ", kept" } else { "" })
}

fn error_and_ece(evaluation: &Evaluation) -> [String; 2] {
    let at = evaluation.calibrated.as_ref().map_or(&evaluation.metrics, |at| &at.metrics);
    let ece = if evaluation.samples >= MIN_SAMPLES_FOR_ECE {
        percent(at.ece_15, None)
    } else {
        "too few samples".into()
    };
    [percent(evaluation.metrics.error, None), ece]
}

fn line(name: &str, width: usize, nll: &str, [error, ece]: &[String; 2]) -> String {
    format!("{}\n", format!("{name:<width$}  {nll:<16}  {error:<18}  {ece}").trim_end())
}

fn of(head: &HeadCandidate, split: EvalSet) -> Option<&Evaluation> {
    head.evaluations.iter().find(|evaluation| evaluation.split == split)
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
            learning_curve: None,
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
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.ends_with(
                "Balanced EM is the model: its NLL on 40 out-of-fold labels is the lowest, 0.875; unlabelled data helped: \
                 the labels alone have 0.875 (95% CI of the difference -0.500 to -0.120)."
            ),
            "{words}"
        );
        let mut average = choice(HeadName::LrEm, -0.12);
        average.candidates[0].nll = Some(0.87);
        let average = kept_in_words(&average);
        let reason = "is 0.875, not clearly above the lowest, 0.870 of logistic regression on the labels alone; unlabelled";
        assert!(average.contains(reason), "{average}");
        let unclear = kept_in_words(&choice(HeadName::BalancedEm, 0.02));
        assert!(unclear.contains("unlabelled data did not clearly help: "), "{unclear}");
        let alone = kept_in_words(&choice(HeadName::LogisticRegression, 0.02));
        assert!(alone.ends_with("; unlabelled data did not help."), "{alone}");
        let unknown = HeadChoice { nll_difference: None, ..choice(HeadName::LogisticRegression, 0.0) };
        assert!(
            kept_in_words(&unknown)
                .starts_with("Logistic regression on the labels alone is the model, because")
        );
    }

    /// Two heads whose NLL differs by 0.031 on 101 labels; the interval is that of a standard error.
    fn two(kept: HeadName, own: f64, error: f64) -> HeadChoice {
        let candidate = |name, nll| HeadCandidate {
            name,
            kept: name == kept,
            nll: Some(nll),
            temperature: None,
            evaluations: Vec::new(),
        };
        let alone = 0.138_4;
        let half = error * upper_quantile(0.025, 100.0).unwrap();
        let estimate = own - alone;
        HeadChoice {
            chosen_on: EvalSet::OutOfFold,
            nll_difference: Some(Estimate {
                n: 101,
                estimate,
                low: estimate - half,
                high: estimate + half,
                level: 0.95,
            }),
            learning_curve: None,
            candidates: vec![candidate(HeadName::Recipe, own), candidate(HeadName::LabelsAlone, alone)],
        }
    }

    #[test]
    fn kept_head_has_a_reason_that_adds_up() {
        // The difference is 0.0302, and that of the numbers as they are shown 0.031.
        assert_eq!(
            kept_in_words(&two(HeadName::Recipe, 0.168_6, 0.060_4)),
            "The recipe's head is the model: its NLL on 101 out-of-fold labels is 0.169, higher than the 0.138 of the head \
             trained on the labels alone, but only by 0.031, 0.5 standard errors (it takes more than 1)."
        );
        assert_eq!(
            kept_in_words(&two(HeadName::Recipe, 0.168_6, 0.020)),
            "The recipe's head is the model: its NLL on 101 out-of-fold labels is 0.169, higher than the 0.138 of the head \
             trained on the labels alone, but only by 0.031, 1.5 standard errors (it takes 2 with so many \
             unlabelled samples)."
        );
        assert_eq!(
            kept_in_words(&two(HeadName::LabelsAlone, 0.168_6, 0.010)),
            "The head trained on the labels alone is the model: its NLL on 101 out-of-fold labels is 0.138, lower than the \
             0.169 of the recipe's head by 0.031, 3.0 standard errors."
        );
        assert_eq!(
            kept_in_words(&two(HeadName::Recipe, 0.120, 0.010)),
            "The recipe's head is the model: its NLL on 101 out-of-fold labels is 0.120, not above the 0.138 of the head \
             trained on the labels alone."
        );
    }
}
