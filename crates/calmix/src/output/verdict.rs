//! The verdict on a finished run, in one sentence: the expected error, the labels that it was measured on, and whether to trust
//! the confidence.

use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::metrics::{
    ExactIntervals, Interval, LEVEL, MIN_SAMPLES_FOR_ECE, MIN_SAMPLES_TO_ASSESS, Metrics,
};
use calmix_metrics::predictions::EvalSet;

use crate::output::format::{counted_in_groups, grouped, over_or_under, percent};
use crate::predict::input::InputKind;

/// The difference in percentage points between mean confidence and accuracy up to which a confidence is called trustworthy.
const TOLERANCE_POINTS: f64 = 5.0;

/// Returns the verdict on a model from its evaluation.
pub(crate) fn verdict(evaluation: &Evaluation, kind: InputKind) -> String {
    let at = evaluation.calibrated.as_ref().map_or(&evaluation.metrics, |at| &at.metrics);
    let Some(intervals) = ExactIntervals::of(at, evaluation.observations(), LEVEL) else {
        return "No label was evaluated, so the error is unknown.".to_owned();
    };
    let labels = labels_in_words(evaluation, kind);
    let Interval { low, high } = intervals.error;
    if evaluation.observations() < MIN_SAMPLES_TO_ASSESS {
        let missing = grouped(MIN_SAMPLES_TO_ASSESS - evaluation.observations());
        let groups = if evaluation.groups.is_some() { " groups" } else { "" };
        return format!(
            "Too few labels for an estimate: the error may be anywhere from {:.0}% to {:.0}% ({labels}); {missing} \
             more{groups} would make {MIN_SAMPLES_TO_ASSESS}.",
            100.0 * low,
            100.0 * high
        );
    }
    let error = percent(at.error, None);
    let interval = format!("95% CI {:.1} to {:.1}, from {labels}", 100.0 * low, 100.0 * high);
    let is_calibrated = evaluation.calibrated.is_some();
    let confidence = trust(at, evaluation.observations(), intervals.confidence_gap, is_calibrated);
    format!("Expect {error} errors ({interval}); {confidence}.")
}

fn labels_in_words(evaluation: &Evaluation, kind: InputKind) -> String {
    match evaluation.split {
        EvalSet::OutOfFold => {
            format!("{} out of fold", counted_in_groups(evaluation.samples, "label", evaluation.groups))
        }
        split => counted_in_groups(
            evaluation.samples,
            &format!("{} {}", split.word(), kind.word()),
            evaluation.groups,
        ),
    }
}

/// Says whether to trust the confidence: by the ECE if there are enough samples, since over- and under-confidence can cancel in
/// the confidence gap.
fn trust(metrics: &Metrics, samples: u64, gap: Interval, is_calibrated: bool) -> String {
    let confidence = if is_calibrated { "its calibrated confidence" } else { "its uncalibrated confidence" };
    if samples >= MIN_SAMPLES_FOR_ECE {
        let off = 100.0 * metrics.ece_15;
        let word = if off <= TOLERANCE_POINTS { "trust" } else { "do not trust" };
        return format!("{word} {confidence}: off by {off:.1} points on average (ECE)");
    }
    let most = 100.0 * gap.low.abs().max(gap.high.abs());
    let how = over_or_under(metrics.confidence_gap);
    if most <= TOLERANCE_POINTS {
        format!("trust {confidence}: it differs from the accuracy by at most {most:.1} points")
    } else if gap.low > 0.0 || gap.high < 0.0 {
        let low = 100.0 * gap.low.abs().min(gap.high.abs());
        format!("do not trust {confidence}: it is {how} ({low:.1} to {most:.1})")
    } else {
        format!("{confidence} is not clearly wrong: {how}, maybe by chance")
    }
}

#[cfg(test)]
mod tests {
    use calmix_metrics::evaluate::evaluate;
    use calmix_metrics::predictions::{EvalModel, Predictions};

    use super::*;

    /// Two classes at one confidence, of which every `nth` is wrong.
    fn made(samples: usize, confidence: f64, nth: usize, split: EvalSet) -> Evaluation {
        let logit = (confidence / (1.0 - confidence)).ln() as f32;
        let predictions = Predictions {
            step: 0,
            split,
            model: EvalModel::Ema,
            classes: vec!["a".to_owned(), "b".to_owned()],
            ids: (0..samples as u64).collect(),
            labels: (0..samples).map(|n| u32::from(n % nth == nth - 1)).collect(),
            logits: [logit, 0.0].repeat(samples),
            groups: Vec::new(),
        };
        evaluate(&predictions, None, None).unwrap()
    }

    #[test]
    fn groups_are_the_observations() {
        let grouped = |samples: usize, groups: u64| {
            let evaluation = made(samples, 0.9, 5, EvalSet::OutOfFold);
            verdict(&Evaluation { groups: Some(groups), ..evaluation }, InputKind::Vector)
        };
        assert_eq!(
            grouped(60, 12),
            "Too few labels for an estimate: the error may be anywhere from 2% to 48% (60 labels in 12 groups out of fold); 38 \
             more groups would make 50."
        );
        let many = grouped(600, 60);
        assert!(
            many.starts_with(
                "Expect 20.0% errors (95% CI 10.8 to 32.3, from 600 labels in 60 groups out of fold)"
            ),
            "{many}"
        );
    }

    #[test]
    fn verdict_says_what_error_to_expect() {
        let of = |samples, confidence, nth, split| {
            verdict(&made(samples, confidence, nth, split), InputKind::Image)
        };
        assert_eq!(
            of(12, 0.9, 4, EvalSet::Test),
            "Too few labels for an estimate: the error may be anywhere from 5% to 57% (12 test images); 38 more would make \
             50."
        );
        assert_eq!(
            of(90, 0.95, 18, EvalSet::OutOfFold),
            "Expect 5.6% errors (95% CI 1.8 to 12.5, from 90 labels out of fold); its uncalibrated confidence is not clearly \
             wrong: over-confident by 0.6 points, maybe by chance."
        );
        assert_eq!(
            of(500, 0.98, 5, EvalSet::Validation),
            "Expect 20.0% errors (95% CI 16.6 to 23.8, from 500 validation images); do not trust its uncalibrated \
             confidence: it is over-confident by 18.0 points (14.6 to 21.8)."
        );
        assert_eq!(
            of(900, 0.95, 20, EvalSet::Test),
            "Expect 5.0% errors (95% CI 3.7 to 6.6, from 900 test images); trust its uncalibrated confidence: it differs \
             from the accuracy by at most 1.6 points."
        );
        let many = of(2_000, 0.9, 20, EvalSet::Test);
        assert!(
            many.ends_with("trust its uncalibrated confidence: off by 5.0 points on average (ECE)."),
            "{many}"
        );
    }
}
