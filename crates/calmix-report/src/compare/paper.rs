//! The metrics in the paper's Tables 1 to 4, in per cent, from `paper.csv` with a line per setting.

use serde::Serialize;

use super::method_words::{SettingTexts, published_words, value};
use super::settings::labels_words;

pub const PAPER: &str =
    "CalibrateMix: Guided-Mixup Calibration of Image Semi-Supervised Models, Tables 1 to 4";

const METRICS: &str = include_str!("paper.csv");

/// The paper's metrics for a setting, in per cent. Tables 1, 2 and 4 have means and standard deviations over three runs,
/// Table 3 has single runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PublishedMetrics {
    /// The expected calibration error; the paper does not state the number of bins.
    pub ece: f64,
    /// The standard deviation of the ECE; `None` for a single run.
    pub ece_std: Option<f64>,
    pub error: f64,
    /// The standard deviation of the error; `None` for a single run.
    pub error_std: Option<f64>,
}

impl PublishedMetrics {
    fn of(line: &str) -> Option<([&str; 3], Self)> {
        let fields: Vec<&str> = line.split(',').collect();
        let [dataset, labels, method, _tables, ece, ece_std, error, error_std] = fields[..] else {
            return None;
        };
        let ece_std = ece_std.parse().ok();
        let error_std = error_std.parse().ok();
        let metrics = Self { ece: ece.parse().ok()?, ece_std, error: error.parse().ok()?, error_std };
        Some(([dataset, labels, method], metrics))
    }
}

/// Returns the metrics of a setting, if a table has its dataset, labels and method.
pub(super) fn find(settings: &SettingTexts) -> Option<PublishedMetrics> {
    let labels = labels_words(settings);
    let method = published_words(settings);
    let wanted = [value(settings, "dataset.source"), &labels, &method];
    METRICS
        .lines()
        .skip(1)
        .filter_map(PublishedMetrics::of)
        .find(|(place, _)| *place == wanted)
        .map(|found| found.1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_line_is_a_setting_of_its_own() {
        let lines: Vec<_> = METRICS.lines().skip(1).collect();
        let read: Vec<_> = lines.iter().filter_map(|line| PublishedMetrics::of(line)).collect();
        let places: BTreeSet<_> = read.iter().map(|(place, _)| *place).collect();
        assert_eq!((lines.len(), read.len(), places.len()), (184, 184, 184));
    }

    #[test]
    fn ablations_are_found_by_their_keys() {
        let settings = |more: &[(&str, &str)]| -> SettingTexts {
            let all = [
                ("dataset.source", "stl10"),
                ("labels.keep", "per-class"),
                ("labels.count", "4"),
                ("method.base", "softmatch"),
                ("method.mixup.pairing", "calibratemix"),
                ("method.mixup.guidance.fraction", "0.05"),
                ("method.smoothing", "none"),
            ];
            all.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let error = |more: &[(&str, &str)]| find(&settings(more)).map(|metrics| metrics.error);
        assert_eq!(error(&[]), Some(15.18));
        assert_eq!(error(&[("method.mixup.guidance.fraction", "0.1")]), Some(14.92));
        assert_eq!(error(&[("method.mixup.guidance.dissimilar", "any")]), Some(15.69));
        assert_eq!(
            error(&[("method.mixup.pairing", "all"), ("method.mixup.start.share", "0.0")]),
            Some(23.41)
        );
        assert_eq!(error(&[("method.smoothing", "uniform"), ("labels.count", "100")]), Some(5.97));
        assert_eq!(error(&[("method.base", "freematch")]), None);
        assert_eq!(error(&[("labels.count", "5")]), None);
        // The paper's FullySupervised on STL-10 uses 1,000 labels, not 5,000.
        let supervised = [("method.base", "supervised"), ("method.mixup.pairing", "none")];
        assert_eq!(error(&[supervised[0], supervised[1], ("labels.count", "100")]), Some(34.41));
        assert_eq!(error(&[supervised[0], supervised[1], ("labels.keep", "all")]), None);
    }
}
