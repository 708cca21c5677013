//! Predictions for another mix of classes than that of the held-out labels: known shares, or shares estimated from the samples.

use std::collections::BTreeMap;
use std::path::Path;

use calmix_core::matrix::Matrix;
use calmix_core::rng::{Domain, Seed};
use calmix_io::safe_open;
use calmix_io::shown::shown;
use calmix_metrics::error::MetricsError;
use calmix_metrics::held_out::{LabelLogits, mix_weights};
use calmix_metrics::shift::{ClassShares, ShiftDetector, label_shares};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::CliError;

/// The largest size of a file of shares in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// The largest distance of the sum of known shares from 1: they may be rounded.
const SUM_TOLERANCE: f64 = 0.01;
/// The largest number of rows that shares are estimated from.
const MAX_ROWS: usize = 20_000;
/// The largest number of probabilities that shares are estimated from, 64 MiB.
const MAX_PROBABILITIES: usize = 1 << 24;
/// The largest p-value with which the mix of the samples counts as another one, to which predictions are adapted.
const ADAPT_LEVEL: f64 = 0.01;

/// Where the shares of a mix come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MixSource {
    /// The user knows them.
    Known,
    /// They were estimated from the samples.
    Estimated,
}

/// Another mix of classes.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherMix {
    /// Where the shares come from.
    pub source: MixSource,
    /// The share of each class.
    pub shares: Vec<f64>,
    /// The 95% interval of each share, if they were estimated.
    pub intervals: Vec<[f64; 2]>,
    /// The shares relative to those of the held-out labels.
    pub weights: Vec<f64>,
}

/// The mix of some samples, and whether predictions are adapted to it.
#[derive(Debug, Clone, PartialEq)]
pub struct EstimatedMix {
    /// The estimated shares, with the weights that follow from them.
    pub mix: OtherMix,
    /// Whether it differs from that of the held-out labels by more than both are uncertain.
    pub is_other: bool,
}

impl OtherMix {
    /// Creates a mix of known shares.
    pub fn known(shares: &[f64], labels: &LabelLogits) -> Self {
        let total: f64 = shares.iter().sum();
        let shares: Vec<f64> = shares.iter().map(|share| share / total).collect();
        let weights = mix_weights(&shares, &label_shares(&labels.labels, labels.classes));
        Self { source: MixSource::Known, shares, intervals: Vec::new(), weights }
    }

    /// Describes the mix as JSON.
    pub fn to_json(&self, classes: &[String]) -> Value {
        let mut shares = Map::new();
        for (class, share) in classes.iter().zip(&self.shares) {
            shares.insert(class.clone(), (*share).into());
        }
        let mut intervals = Map::new();
        for (class, interval) in classes.iter().zip(&self.intervals) {
            intervals.insert(class.clone(), interval.to_vec().into());
        }
        serde_json::json!({ "source": self.source, "shares": shares, "intervals": intervals })
    }
}

/// Checks known shares of all classes.
///
/// # Errors
/// If one is negative or not finite, or they do not add up to 1.
pub fn check_shares(shares: &[f64]) -> Result<(), String> {
    if let Some(share) = shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
        return Err(format!("a share of {share} is not between 0 and 1"));
    }
    let sum: f64 = shares.iter().sum();
    if (sum - 1.0).abs() > SUM_TOLERANCE {
        return Err(format!("the shares add up to {sum:.4}, not to 1"));
    }
    Ok(())
}

/// Reads known shares from a CSV file with the columns `class` and `share`, one line per class.
///
/// # Errors
/// If a class is unknown, missing or named twice, or the shares are not shares; the error names the line.
pub fn read_shares(path: &Path, classes: &[String]) -> Result<Vec<f64>, CliError> {
    let place = shown(path.display());
    let hint = "write a CSV file with the columns class and share, a line for each class of the model";
    let invalid = |problem: String| CliError::invalid(format!("{place}: {problem}")).hint(hint);
    let bytes = safe_open::read(path, MAX_FILE_BYTES).map_err(|error| invalid(error.problem.to_string()))?;
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let header = reader.headers().map_err(|error| invalid(error.to_string()))?;
    if header.iter().collect::<Vec<_>>() != ["class", "share"] {
        return Err(invalid("line 1: the columns are not class,share".to_owned()));
    }
    let numbers: BTreeMap<&str, usize> = classes.iter().map(String::as_str).zip(0..).collect();
    let mut shares: Vec<Option<f64>> = vec![None; classes.len()];
    for (line, row) in (2..).zip(reader.records()) {
        let row = row.map_err(|error| invalid(error.to_string()))?;
        let class = row.get(0).unwrap_or_default();
        let Some(&number) = numbers.get(class) else {
            return Err(invalid(format!("line {line}: {} is not a class of the model", shown(class))));
        };
        let share = row.get(1).unwrap_or_default();
        let share: f64 = share
            .trim()
            .parse()
            .map_err(|_| invalid(format!("line {line}: {} is not a number", shown(share))))?;
        if shares[number].replace(share).is_some() {
            return Err(invalid(format!("line {line}: {} is there twice", shown(class))));
        }
    }
    if let Some(missing) = shares.iter().position(Option::is_none) {
        return Err(invalid(format!("there is no line for {}", shown(&classes[missing]))));
    }
    let shares: Vec<f64> = shares.into_iter().flatten().collect();
    check_shares(&shares).map_err(invalid)?;
    Ok(shares)
}

/// The calibrated probabilities of at most 20,000 rows, drawn by their numbers.
#[derive(Debug)]
pub struct ProbabilitySample {
    classes: usize,
    rows: BTreeMap<(u64, u64), Vec<f32>>,
    seen: u64,
}

impl ProbabilitySample {
    /// Creates an empty sample.
    pub fn new(classes: usize) -> Self {
        Self { classes, rows: BTreeMap::new(), seen: 0 }
    }

    /// Adds the next row.
    pub fn add(&mut self, probabilities: &[f32]) {
        let max_rows = MAX_ROWS.min(MAX_PROBABILITIES / self.classes.max(1)).max(1);
        let key = (Seed(0).stream(Domain::Reference, 1, self.seen).next_u64(), self.seen);
        self.seen += 1;
        if self.rows.len() < max_rows || self.rows.last_key_value().is_some_and(|(last, _)| key < *last) {
            self.rows.insert(key, probabilities.to_vec());
            if self.rows.len() > max_rows {
                self.rows.pop_last();
            }
        }
    }

    /// Estimates the mix of the rows; `mix` is the p-value of the test that it is that of the held-out labels.
    ///
    /// # Errors
    /// If there are no rows.
    pub fn estimate(&self, detector: &ShiftDetector, mix: f64) -> Result<EstimatedMix, MetricsError> {
        let labels = &detector.reference().labels;
        let source = label_shares(&labels.labels, labels.classes);
        let numbers: Vec<f32> = self.rows.values().flatten().copied().collect();
        let rows = Matrix::new(&numbers, self.rows.len(), self.classes);
        let rows = rows.map_err(|_| MetricsError::NoSamples)?;
        let ClassShares { shares, intervals } = ClassShares::estimate(rows, &source, detector.labels())?;
        let weights = mix_weights(&shares, &source);
        let mix_is_other = mix <= ADAPT_LEVEL;
        let mix = OtherMix { source: MixSource::Estimated, shares, intervals, weights };
        Ok(EstimatedMix { mix, is_other: mix_is_other })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_of_shares_are_checked() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("mix.csv");
        let classes = ["cat".to_owned(), "dog, big".to_owned()];
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            read_shares(&path, &classes).map_err(|error| error.to_string())
        };
        assert_eq!(read("class,share\n\"dog, big\",0.2\ncat, 0.8\n"), Ok(vec![0.8, 0.2]));
        for (text, reason) in [
            ("", "line 1"),
            ("class\ncat\n", "line 1"),
            ("class,share\ncat,1\n", "no line for dog, big"),
            ("class,share\ncat,0.5\ncow,0.5\n", "line 3: cow is not a class"),
            ("class,share\ncat,0.5\ncat,0.5\n", "line 3: cat is there twice"),
            ("class,share\ncat,half\n", "line 2: half is not a number"),
            ("class,share\ncat,0.5\n\"dog, big\",0.6\n", "add up to 1.1"),
            ("class,share\ncat,-0.5\n\"dog, big\",1.5\n", "not between 0 and 1"),
            ("class,share\ncat,nan\n\"dog, big\",1\n", "not between 0 and 1"),
            ("class,share\ncat,0.5,1\n", "fields"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
        assert!(read_shares(&temp.path().join("none.csv"), &classes).is_err());
    }

    #[test]
    fn sample_does_not_grow_without_limit() {
        let mut sample = ProbabilitySample::new(2);
        (0..MAX_ROWS + 500).for_each(|_| sample.add(&[0.5, 0.5]));
        assert_eq!((sample.rows.len(), sample.seen), (MAX_ROWS, MAX_ROWS as u64 + 500));
    }
}
