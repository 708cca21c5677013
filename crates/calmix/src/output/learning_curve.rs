//! What more labels would bring, in a sentence.

use calmix_io::text::grouped;
use calmix_metrics::learning_curve::LearningCurve;
use calmix_metrics::stats::Estimate;

/// Says how the error would fall with more labels, or that the labels are too few to tell.
pub(crate) fn forecast(curve: &LearningCurve) -> String {
    if !curve.can_tell() {
        return "What more labels would bring cannot be told.".to_owned();
    }
    let more = grouped(curve.more);
    format!("{more} more labels like these: {} error, now {}.", range(&curve.later), range(&curve.now))
}

/// Shows an interval in whole percent.
fn range(estimate: &Estimate) -> String {
    let [low, high] = [estimate.low, estimate.high].map(|end| format!("{:.0}", 100.0 * end));
    if low == high { format!("{low}%") } else { format!("{low} to {high}%") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecast_is_one_sentence() {
        let estimate = |low: f64, high: f64| Estimate { n: 60, estimate: low, low, high, level: 0.95 };
        let curve = |gain: f64| LearningCurve {
            points: Vec::new(),
            labels: 237,
            more: 200,
            now: estimate(0.052, 0.093),
            later: estimate(0.041, 0.068),
            gain: estimate(gain, 0.03),
        };
        assert_eq!(forecast(&curve(0.004)), "200 more labels like these: 4 to 7% error, now 5 to 9%.");
        assert_eq!(forecast(&curve(-0.004)), "What more labels would bring cannot be told.");
        let flat = LearningCurve { later: estimate(0.041, 0.043), ..curve(0.001) };
        assert!(forecast(&flat).contains("like these: 4% error"));
    }
}
