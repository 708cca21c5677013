//! The labels that the guarantees of a model rest on: how they were drawn, what they suffice for, and how many more are needed.

use calmix_io::text::{counted, grouped};
use calmix_metrics::abstention::min_labels;
use calmix_metrics::calibrator::CalibratorKind;
use calmix_metrics::conformal::Conformal;
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::held_out::HeldOut;
use calmix_metrics::predictions::EvalSet;
use calmix_run::label_draws::LabelDraws;

/// Describes in at most three sentences the labels that guarantees rest on, or would rest on if there were enough: those that the
/// model stores, or the evaluated ones if it stores none.
pub(crate) fn guarantee_basis(
    held_out: Option<&HeldOut>,
    evaluation: &Evaluation,
    draws: LabelDraws,
) -> Option<String> {
    let (count, is_grouped) = match held_out {
        Some(held_out) => (held_out.group_count() as u64, held_out.group_count() < held_out.len()),
        None if evaluation.split == EvalSet::Test => return None,
        None => (evaluation.observations(), evaluation.groups.is_some()),
    };
    Some(described(&counted_labels(count, is_grouped), count, draws))
}

fn counted_labels(count: u64, is_grouped: bool) -> String {
    if is_grouped { format!("{} of labels", counted(count, "group")) } else { counted(count, "label") }
}

fn described(counted: &str, count: u64, draws: LabelDraws) -> String {
    let mut text = if draws.is_unknown() {
        format!("Guarantees take the {counted} as drawn at random; mark chosen ones in a column `drawn`")
    } else if draws.by_class > 0 {
        format!("{counted} drawn in equal numbers per class")
    } else {
        format!("{counted} drawn at random")
    };
    let kinds = [(draws.chosen, "chosen"), (draws.audit, "audited"), (draws.certified, "certified")];
    let mut kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
    if let Some((count, kind)) = kinds.next() {
        text.extend([" (", &are(count), " ", kind]);
        for (count, kind) in kinds {
            text.extend([", ", &grouped(count), " ", kind]);
        }
        text += " and trained on only)";
    }
    text.extend([". ", &sufficiency(count)]);
    if draws.by_class > 0 {
        text += " Only sets of `--sets lac-by-class` hold for any mix of classes; the other sets and the precision hold if all \
                 classes are equally frequent.";
    }
    text
}

fn are(count: u64) -> String {
    if count == 1 { "1 more was".to_owned() } else { format!("{count} more were") }
}

/// Says which guarantees this number of labels suffices for, and how many labels the next one lacks.
fn sufficiency(count: u64) -> String {
    let coverage = |share: f64| {
        // Without a calibrator there are no prediction sets.
        let needed = Conformal::min_labels(1.0 - share).max(CalibratorKind::Temperature.min_labels());
        (format!("{:.0}% coverage", 100.0 * share), needed)
    };
    let precision =
        |share: f64| (format!("{:.0}% precision", 100.0 * share), min_labels(share, HeldOut::DELTA));
    let targets = [coverage(0.9), precision(0.9), precision(0.95)];
    let is_enough = |(_, needed): &&(String, usize)| *needed as u64 <= count;
    let enough: Vec<&str> = targets.iter().filter(is_enough).map(|(what, _)| what.as_str()).collect();
    let lacking = targets.iter().find(|target| !is_enough(target));
    let enough = match enough.as_slice() {
        [] => String::new(),
        names => format!("Enough for {}", names.join(", ")),
    };
    match lacking {
        None => enough + ".",
        Some((what, needed)) => {
            let missing = *needed as u64 - count;
            let separator = if enough.is_empty() { "" } else { "; " };
            format!("{enough}{separator}{what} needs at least {missing} more.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(labels: u64, draws: LabelDraws) -> String {
        described(&counted(labels, "label"), labels, draws)
    }

    #[test]
    fn labels_are_counted_by_what_they_suffice_for() {
        let random = |random| LabelDraws { random, ..LabelDraws::default() };
        assert_eq!(
            of(22, random(22)),
            "22 labels drawn at random. Enough for 90% coverage, 90% precision; 95% precision needs at least 23 more."
        );
        assert_eq!(of(8, random(8)), "8 labels drawn at random. 90% coverage needs at least 2 more.");
        assert_eq!([counted_labels(2, true), counted_labels(1, false)], ["2 groups of labels", "1 label"]);
        let certified = of(60, LabelDraws { audit: 65, certified: 1_200, ..random(60) });
        assert!(
            certified.contains("(65 more were audited, 1,200 certified and trained on only)"),
            "{certified}"
        );
        let all = of(60, LabelDraws { chosen: 1, ..random(60) });
        assert_eq!(
            all,
            "60 labels drawn at random (1 more was chosen and trained on only). Enough for 90% coverage, 90% precision, \
             95% precision."
        );
    }

    #[test]
    fn draws_that_are_unknown_or_by_class_are_named() {
        let given = of(60, LabelDraws { given: 60, ..LabelDraws::default() });
        assert!(
            given.starts_with("Guarantees take the 60 labels as drawn at random; mark chosen ones"),
            "{given}"
        );
        let by_class = of(60, LabelDraws { by_class: 60, ..LabelDraws::default() });
        assert!(by_class.starts_with("60 labels drawn in equal numbers per class."), "{by_class}");
        assert!(by_class.ends_with("hold if all classes are equally frequent."), "{by_class}");
    }
}
