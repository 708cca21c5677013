//! The difference between two settings, paired by seed.

use calmix_io::shown::shown;
use calmix_metrics::error::MetricsError;
use calmix_metrics::stats::{Estimate, paired_t_test};
use serde::Serialize;

use super::measure::{ComparedRun, Measure};
use super::method_words::{is_plain, value};
use super::settings::GroupedRuns;

pub const LEVEL: f64 = 0.95;

pub const MIN_PAIRS: usize = 3;

/// The corrected p-value below which a difference is significant.
const SIGNIFICANCE_LEVEL: f64 = 0.05;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairOutcome {
    /// The setting is lower, and therefore better.
    Lower,
    /// The setting is higher, and therefore worse.
    Higher,
    /// The difference may be due to chance.
    #[serde(rename = "not-told-apart")]
    NotSignificant,
    /// There are fewer than [`MIN_PAIRS`] pairs of runs.
    TooFew,
    /// All pairs differ by the same amount: without variance, the test is not applicable.
    #[serde(rename = "no-scatter")]
    NoVariance,
}

/// A setting minus its baseline, on the same seeds. Metrics are shares, not per cent.
#[derive(Debug, Clone, Serialize)]
pub struct SettingDifference {
    /// The index of the data in [`Comparison::columns`](super::Comparison::columns).
    pub column: usize,
    /// The index of the setting's name in [`Comparison::rows`](super::Comparison::rows).
    pub row: usize,
    /// The index of the baseline's name.
    pub against: usize,
    pub measure: Measure,
    /// The number of pairs of runs with the same seeds.
    pub pairs: usize,
    /// The mean difference; `None` without pairs.
    pub mean: Option<f64>,
    /// Student's interval of the mean; `None` with fewer than [`MIN_PAIRS`] pairs.
    pub interval: Option<Estimate>,
    /// The two-sided p-value of the null hypothesis, if it was tested.
    pub p_value: Option<f64>,
    /// The p-value after Holm's correction for all tests of the comparison.
    pub p_holm: Option<f64>,
    pub outcome: PairOutcome,
}

impl PairOutcome {
    pub fn words(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
            Self::NotSignificant => "no significant difference",
            Self::TooFew => "too few runs",
            Self::NoVariance => "no variance: not tested",
        }
    }
}

impl SettingDifference {
    /// Sets the corrected p-value and the resulting outcome.
    pub(super) fn evaluate(&mut self, p_holm: Option<f64>) {
        self.p_holm = p_holm;
        self.outcome = match (p_holm.is_some_and(|p| p < SIGNIFICANCE_LEVEL), self.mean) {
            (true, Some(mean)) if mean < 0.0 => PairOutcome::Lower,
            (true, Some(_)) => PairOutcome::Higher,
            _ => PairOutcome::NotSignificant,
        };
    }
}

/// Computes every difference, before the correction.
pub(super) fn all(
    settings: &[GroupedRuns],
    against: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<Vec<SettingDifference>, MetricsError> {
    let mut differences = Vec::new();
    for setting in settings {
        let Some(base) = baseline(settings, setting, against) else { continue };
        if base.row == setting.row {
            continue;
        }
        let unpaired = setting.runs.len() + base.runs.len() - 2 * pairs(base, setting, |_| Some(0.0)).0.len();
        if unpaired > 0 {
            let names = shown(&setting.runs[0].name);
            notes.push(format!(
                "the setting of {names}: runs without a counterpart of the same seeds are left out of its differences"
            ));
        }
        for measure in Measure::TESTED {
            let (first, second) = pairs(base, setting, |run| measure.of(run));
            if measure.of(&setting.runs[0]).is_none() {
                continue;
            }
            differences.push(difference(setting, base, measure, &first, &second)?);
        }
    }
    Ok(differences)
}

/// Finds the baseline of a setting on the same data.
fn baseline<'a>(
    settings: &'a [GroupedRuns],
    of: &GroupedRuns,
    against: Option<&str>,
) -> Option<&'a GroupedRuns> {
    let mut column = settings.iter().filter(|other| other.column == of.column);
    if let Some(name) = against {
        return column.find(|other| other.runs.iter().any(|run| run.name == name));
    }
    let base = |setting: &GroupedRuns| value(&setting.runs[0].settings, "method.base").to_owned();
    let plain = column.clone().find(|other| is_plain(&other.runs[0].settings) && base(other) == base(of));
    plain.or_else(|| column.next())
}

/// Pairs the metrics of runs with the same seeds.
fn pairs(
    first: &GroupedRuns,
    second: &GroupedRuns,
    metric: impl Fn(&ComparedRun) -> Option<f64>,
) -> (Vec<f64>, Vec<f64>) {
    let partner = |run: &ComparedRun| {
        let other = second.runs.iter().find(|other| other.seeds == run.seeds)?;
        Some((metric(run)?, metric(other)?))
    };
    first.runs.iter().filter_map(partner).unzip()
}

fn difference(
    setting: &GroupedRuns,
    base: &GroupedRuns,
    measure: Measure,
    first: &[f64],
    second: &[f64],
) -> Result<SettingDifference, MetricsError> {
    let pairs = first.len();
    let sum: f64 = second.iter().zip(first).map(|(b, a)| b - a).sum();
    let mut difference = SettingDifference {
        column: setting.column,
        row: setting.row,
        against: base.row,
        measure,
        pairs,
        mean: (pairs > 0).then(|| sum / pairs as f64),
        interval: None,
        p_value: None,
        p_holm: None,
        outcome: PairOutcome::TooFew,
    };
    if pairs < MIN_PAIRS {
        return Ok(difference);
    }
    let test = paired_t_test(first, second, LEVEL)?;
    if test.difference.low == test.difference.high {
        difference.outcome = PairOutcome::NoVariance;
        return Ok(difference);
    }
    difference.interval = Some(test.difference);
    difference.p_value = Some(test.p_value);
    Ok(difference)
}
