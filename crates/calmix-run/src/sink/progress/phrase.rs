//! Formats numbers and metrics for terminals and reports.

use calmix_io::text::counted;
use calmix_metrics::metrics::{ExactIntervals, Interval, LEVEL, MIN_SAMPLES_FOR_ECE, Metrics};

use calmix_metrics::pseudo_labels::PseudoLabelMetrics;

/// Formats a share in per cent, five columns wide.
pub(super) fn percent(share: f64) -> String {
    format!("{:>4.1}%", 100.0 * share)
}

/// Formats a share in per cent, with its interval if given.
pub fn measured(share: f64, interval: Option<Interval>) -> String {
    let interval =
        interval.map(|interval| format!(" ({:.1} to {:.1})", 100.0 * interval.low, 100.0 * interval.high));
    format!("{:.1}%{}", 100.0 * share, interval.unwrap_or_default())
}

/// Says whether a model is over- or under-confident, and by how many percentage points.
pub fn over_or_under(gap: f64) -> String {
    let points = 100.0 * gap;
    match points {
        // Rounded to one digit, these are zero.
        -0.05..0.05 => "neither over- nor under-confident".to_owned(),
        _ if points > 0.0 => format!("over-confident by {points:.1} points"),
        _ => format!("under-confident by {:.1} points", -points),
    }
}

/// Formats the confidence gap (mean confidence − accuracy) in percentage points, with its interval.
pub fn signed_gap(metrics: &Metrics, samples: u64) -> String {
    let points = |gap: f64| {
        // Rounded to one digit, these are zero.
        let zero = (100.0 * gap).abs() < 0.05;
        if zero { "0.0".to_owned() } else { format!("{:+.1}", 100.0 * gap) }
    };
    let interval = ExactIntervals::of(metrics, samples, LEVEL).map(|interval| interval.confidence_gap);
    let interval = interval.map(|Interval { low, high }| format!(" ({} to {})", points(low), points(high)));
    format!("{}{}", points(metrics.confidence_gap), interval.unwrap_or_default())
}

/// Formats the ECE in parentheses; empty with fewer than [`MIN_SAMPLES_FOR_ECE`] images.
pub fn ece_in_words(ece: f64, samples: u64) -> String {
    if samples >= MIN_SAMPLES_FOR_ECE {
        format!(" (ECE {}, 15 bins)", measured(ece, None))
    } else {
        String::new()
    }
}

/// Describes the calibration of a model: its confidence gap, mean confidence, accuracy and ECE.
pub fn confidence_in_words(metrics: &Metrics, samples: u64) -> String {
    format!(
        "{}: mean confidence {}, accuracy {}{}",
        over_or_under(metrics.confidence_gap),
        measured(metrics.mean_confidence, None),
        measured(1.0 - metrics.error, None),
        ece_in_words(metrics.ece_15, samples),
    )
}

/// Describes the error and calibration of the pseudo-labels at the end of a run.
pub fn pseudo_in_words(pseudo: &PseudoLabelMetrics) -> String {
    format!(
        "pseudo-labels of {} at the end: {} wrong, {}{}",
        counted(pseudo.samples, "unlabelled sample"),
        measured(pseudo.error, None),
        over_or_under(pseudo.confidence_gap),
        ece_in_words(pseudo.ece_15, pseudo.samples),
    )
}

/// Formats a duration in its largest units.
pub fn rough_time(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let minutes = seconds / 60;
    let hours = seconds / 3600;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min"),
        3600..172_800 => format!("{hours} h {:02} min", minutes % 60),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibration_is_described_in_words() {
        let metrics = |error, mean_confidence, ece_15| Metrics {
            error,
            mean_confidence,
            confidence_gap: mean_confidence - (1.0 - error),
            ece_15,
            ..Metrics::default()
        };
        assert_eq!(
            confidence_in_words(&metrics(0.197, 0.892, 0.089), 1_000),
            "over-confident by 8.9 points: mean confidence 89.2%, accuracy 80.3% (ECE 8.9%, 15 bins)"
        );
        assert_eq!(
            confidence_in_words(&metrics(0.1, 0.85, 0.07), 999),
            "under-confident by 5.0 points: mean confidence 85.0%, accuracy 90.0%"
        );
        assert_eq!(signed_gap(&metrics(0.0, 0.9, 0.1), 4), "-10.0 (-10.0 to +50.2)");
        assert_eq!(signed_gap(&metrics(0.197, 0.892, 0.089), 0), "+8.9");
        assert_eq!(
            [0.0, -0.0004, 0.0004, 0.0006].map(over_or_under)[..3],
            ["neither over- nor under-confident"; 3]
        );
        assert_eq!(over_or_under(0.0006), "over-confident by 0.1 points");
        let pseudo = PseudoLabelMetrics {
            samples: 59_900,
            error: 0.125,
            mean_confidence: 0.9,
            confidence_gap: 0.025,
            ece_15: 0.03,
        };
        assert_eq!(
            pseudo_in_words(&pseudo),
            "pseudo-labels of 59,900 unlabelled samples at the end: 12.5% wrong, over-confident by 2.5 points (ECE 3.0%, 15 bins)"
        );
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [0.4, 59.6, 185.0, 7260.0, 200_000.0].map(rough_time),
            ["0 s", "1 min", "3 min", "2 h 01 min", "2 d 7 h"]
        );
        assert_eq!(percent(0.0794), " 7.9%");
        assert_eq!(measured(0.5, Some(Interval { low: 0.25, high: 0.75 })), "50.0% (25.0 to 75.0)");
    }
}
