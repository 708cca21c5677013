//! The line about work other than training steps: name, count, rate and time left.

use calmix_io::text::grouped;

use super::line::{Priority, Segment};
use super::phrase::rough_time;
use crate::sink::{Work, WorkProgress};

/// Returns the parts of the line. The first line has no rate and no time left, because nothing is done yet.
pub(super) fn work_line(progress: &WorkProgress, sample: &str) -> Vec<Segment> {
    let &WorkProgress { work, done, total, seconds } = progress;
    let (name, units) = match work {
        Work::Features => ("features", "views".to_owned()),
        Work::HeadSteps => ("heads", "steps".to_owned()),
        Work::Heads => ("heads", "trainings".to_owned()),
        Work::Calibrators => ("calibrating the heads", String::new()),
        Work::Evaluation(split) => ("evaluating", format!("{} {sample}s", split.word())),
        Work::Intervals => ("confidence intervals", "resamples".to_owned()),
        Work::PseudoLabels => ("pseudo-labels", format!("unlabelled {sample}s")),
    };
    let count = match total {
        0 => name.to_owned(),
        _ => format!("{name}: {} of {} {units}", grouped(done), grouped(total)),
    };
    let mut parts = vec![(Priority::Always, count)];
    if done == 0 {
        // The elapsed time shows that the work goes on, although nothing is done yet.
        if seconds >= 1.0 {
            parts.push((Priority::Always, format!("{} so far", rough_time(seconds))));
        }
        return parts;
    }
    let rate = done as f64 / seconds.max(1e-9);
    parts.extend(rate_in_words(rate).map(|rate| (Priority::Rate, format!("{rate} per second"))));
    if done < total {
        let left = total.saturating_sub(done) as f64 / rate;
        parts.push((Priority::Always, format!("left {}", rough_time(left))));
    }
    parts
}

/// Formats a rate, with one decimal if it is low; `None` if it would be shown as zero.
fn rate_in_words(rate: f64) -> Option<String> {
    match rate {
        ..0.1 => None,
        0.1..10.0 => Some(format!("{rate:.1}")),
        _ => Some(grouped(rate.round() as u64)),
    }
}

#[cfg(test)]
mod tests {
    use calmix_metrics::predictions::EvalSet;

    use super::*;
    use crate::sink::progress::line::joined;

    fn line(work: Work, done: u64, total: u64, seconds: f64) -> String {
        joined(&work_line(&WorkProgress { work, done, total, seconds }, "vector"))
    }

    #[test]
    fn estimate_waits_until_something_is_done() {
        assert_eq!(line(Work::Heads, 0, 33, 0.4), "heads: 0 of 33 trainings");
        assert_eq!(line(Work::Heads, 0, 33, 12.0), "heads: 0 of 33 trainings  12 s so far");
        assert_eq!(line(Work::Heads, 1, 33, 40.0), "heads: 1 of 33 trainings  left 21 min");
        assert_eq!(line(Work::Heads, 3, 33, 6.0), "heads: 3 of 33 trainings  0.5 per second  left 1 min");
        assert_eq!(line(Work::Heads, 33, 33, 66.0), "heads: 33 of 33 trainings  0.5 per second");
        assert_eq!(line(Work::Calibrators, 0, 0, 5.0), "calibrating the heads  5 s so far");
    }

    #[test]
    fn work_after_the_last_step_is_named() {
        let evaluation = Work::Evaluation(EvalSet::Test);
        assert_eq!(
            line(evaluation, 2_500, 10_000, 2.0),
            "evaluating: 2,500 of 10,000 test vectors  1,250 per second  left 6 s"
        );
        assert_eq!(
            line(Work::PseudoLabels, 59_750, 59_750, 10.0),
            "pseudo-labels: 59,750 of 59,750 unlabelled vectors  5,975 per second"
        );
        assert_eq!(line(Work::Intervals, 0, 2_000, 0.0), "confidence intervals: 0 of 2,000 resamples");
    }
}
