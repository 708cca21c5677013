//! The difficulty of samples: the mean margins of the halves of a batch, and the distributions of AUM and APM at the end of a
//! run (`margins.json`).
//!
//! Distributions are counts in bins of a fixed width, so that processes can add their counts in any order, and a billion
//! samples give a file no larger than a thousand do.

use calmix_core::mixup::split::Halves;
use calmix_core::plan::Difficulty;
use calmix_core::samples::{LabelledSamples, Samples};
use serde::{Deserialize, Serialize};

/// A distribution of margins.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, try_from = "HistogramParts", into = "HistogramParts")]
pub struct MarginHistogram {
    /// The counts of 2·[`HALF_BINS`](Self::HALF_BINS) + 1 bins; empty before the first margin.
    counts: Vec<u64>,
}

/// The histogram as it is stored, without the empty bins at its ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HistogramParts {
    width: f64,
    first: i64,
    counts: Vec<u64>,
}

/// The margins of a run's samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleMargins {
    /// AUM of the labelled samples that were visited.
    pub labelled: MarginHistogram,
    /// The largest APM over all classes of each unlabelled sample that was visited.
    pub unlabelled: MarginHistogram,
}

impl MarginHistogram {
    /// The width of a bin, in logits.
    pub const WIDTH: f64 = 0.125;
    /// The number of bins on each side of zero; the last ones include everything beyond.
    const HALF_BINS: i64 = 512;

    /// Counts a margin.
    pub fn add(&mut self, margin: f64) {
        if self.counts.is_empty() {
            self.counts = vec![0; 2 * Self::HALF_BINS as usize + 1];
        }
        let bin = (margin / Self::WIDTH).floor() as i64;
        let at = (bin.clamp(-Self::HALF_BINS, Self::HALF_BINS) + Self::HALF_BINS) as usize;
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
    }

    /// Adds the counts of another process.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.is_empty() {
            self.counts.clone_from(&other.counts);
        } else {
            for (count, more) in self.counts.iter_mut().zip(&other.counts) {
                *count += more;
            }
        }
    }

    /// Returns the number of margins.
    pub fn samples(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns every bin from the first to the last that is not empty: its lower end, and its number of margins.
    pub fn bins(&self) -> impl Iterator<Item = (f64, u64)> {
        let HistogramParts { first, counts, .. } = self.clone().into();
        counts
            .into_iter()
            .enumerate()
            .map(move |(at, count)| ((first as f64 + at as f64) * Self::WIDTH, count))
    }

    /// Returns the median, as if the margins of a bin were spread evenly; `None` without margins.
    pub fn median(&self) -> Option<f64> {
        let half = self.samples() as f64 / 2.0;
        let mut before = 0.0;
        for (lower, count) in self.bins().filter(|(_, count)| *count > 0) {
            let count = count as f64;
            if before + count >= half {
                return Some(lower + Self::WIDTH * (half - before) / count);
            }
            before += count;
        }
        None
    }
}

impl SampleMargins {
    /// Counts the margins of all labelled samples, and of the unlabelled samples of this process.
    pub fn of(labelled: &LabelledSamples, samples: &Samples) -> Self {
        let mut margins = Self::default();
        if let Some(store) = &labelled.margins {
            let parts = store.parts();
            let visited = parts.averages.iter().zip(&parts.visits).filter(|(_, visits)| **visits > 0);
            visited.for_each(|(&average, _)| margins.labelled.add(average));
        }
        for store in samples.micro_batches.iter().filter_map(|samples| samples.margins.as_ref()) {
            let parts = store.parts();
            let rows = parts.values.chunks(parts.classes.max(1)).zip(&parts.visits);
            for (row, _) in rows.filter(|(_, visits)| **visits > 0) {
                margins.unlabelled.add(f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max)));
            }
        }
        margins
    }

    /// Returns whether nothing was counted, because the method does not use margins.
    pub fn is_empty(&self) -> bool {
        self.labelled.samples() + self.unlabelled.samples() == 0
    }
}

impl From<MarginHistogram> for HistogramParts {
    fn from(histogram: MarginHistogram) -> Self {
        let filled = |count: &u64| *count > 0;
        let from = histogram.counts.iter().position(filled).unwrap_or(0);
        let to = histogram.counts.iter().rposition(filled).map_or(0, |last| last + 1);
        let counts = histogram.counts.get(from..to).unwrap_or_default().to_vec();
        let first =
            if counts.is_empty() { 0 } else { from.cast_signed() as i64 - MarginHistogram::HALF_BINS };
        Self { width: MarginHistogram::WIDTH, first, counts }
    }
}

impl TryFrom<HistogramParts> for MarginHistogram {
    type Error = String;

    fn try_from(parts: HistogramParts) -> Result<Self, String> {
        let HistogramParts { width, first, counts } = parts;
        if counts.is_empty() {
            return Ok(Self::default());
        }
        if width != Self::WIDTH
            || first.saturating_add(counts.len().cast_signed() as i64) > Self::HALF_BINS + 1
            || first < -Self::HALF_BINS
        {
            return Err(format!(
                "bins of width {width} from number {first} on are not those of this version"
            ));
        }
        if counts.iter().try_fold(0_u64, |sum, &count| sum.checked_add(count)).is_none() {
            return Err("more margins than can be counted".to_owned());
        }
        let mut all = vec![0; 2 * Self::HALF_BINS as usize + 1];
        for (to, count) in all.iter_mut().skip((first + Self::HALF_BINS) as usize).zip(counts) {
            *to = count;
        }
        Ok(Self { counts: all })
    }
}

/// Mean margins of the halves of a batch: AUM of the labelled, APM of the unlabelled samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Margins {
    /// The mean margins (AUM) of the labelled rows.
    pub labelled: EasyHard,
    /// The mean margins (APM) of the unlabelled rows.
    pub unlabelled: EasyHard,
}

/// The mean of each half; `None` if it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EasyHard {
    /// The mean margin of the easy rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub easy: Option<f64>,
    /// The mean margin of the hard rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<f64>,
}

impl Margins {
    /// Averages the margins of a plan.
    pub fn of(difficulty: &Difficulty) -> Self {
        let half = |margins: &[f64], rows: &[usize]| mean(rows.iter().filter_map(|&row| margins.get(row)));
        let halves = |margins: &[f64], of: &Halves| EasyHard {
            easy: half(margins, &of.easy),
            hard: half(margins, &of.hard),
        };
        Self {
            labelled: halves(&difficulty.aum, &difficulty.labelled),
            unlabelled: halves(&difficulty.apm, &difficulty.unlabelled),
        }
    }
}

fn mean<'a>(numbers: impl Iterator<Item = &'a f64>) -> Option<f64> {
    let (mut sum, mut n) = (0.0, 0_u32);
    for number in numbers {
        sum += number;
        n += 1;
    }
    (n > 0).then(|| sum / f64::from(n))
}

#[cfg(test)]
mod tests {
    use calmix_core::matrix::Matrix;
    use calmix_core::method::Method;

    use super::*;

    fn of(margins: &[f64]) -> MarginHistogram {
        let mut histogram = MarginHistogram::default();
        for &margin in margins {
            histogram.add(margin);
        }
        histogram
    }

    #[test]
    fn histogram_survives_its_file() {
        let histogram = of(&[-0.01, 0.0, 0.124, 0.3, 1e9]);
        let filled: Vec<(f64, u64)> = histogram.bins().filter(|bin| bin.1 > 0).collect();
        assert_eq!(filled, [(-0.125, 1), (0.0, 2), (0.25, 1), (64.0, 1)]);
        // Two and a half margins: one before zero, one and a half of two in the next bin.
        assert_eq!(histogram.median(), Some(0.125 * 0.75));
        let text = serde_json::to_string(&of(&[-0.01, 0.3])).unwrap();
        assert_eq!(text, r#"{"width":0.125,"first":-1,"counts":[1,0,0,1]}"#);
        assert_eq!(serde_json::from_str::<MarginHistogram>(&text).unwrap(), of(&[-0.01, 0.3]));
        let none = serde_json::to_string(&MarginHistogram::default()).unwrap();
        assert_eq!(serde_json::from_str::<MarginHistogram>(&none).unwrap(), MarginHistogram::default());
        assert_eq!(MarginHistogram::default().median(), None);
        let bad = r#"{"width":0.125,"first":9223372036854775807,"counts":[1,1]}"#;
        assert!(serde_json::from_str::<MarginHistogram>(bad).is_err());
        let bad = r#"{"width":0.125,"first":0,"counts":[18446744073709551615,1]}"#;
        assert!(serde_json::from_str::<MarginHistogram>(bad).is_err());
    }

    #[test]
    fn processes_add_up_in_any_order() {
        let mut one = of(&[1.0, 2.0]);
        let mut two = of(&[-3.0]);
        let left = one.clone();
        let right = two.clone();
        one.merge(&right);
        two.merge(&left);
        assert_eq!(one, two);
        assert_eq!(one, of(&[2.0, -3.0, 1.0]));
        one.merge(&MarginHistogram::default());
        assert_eq!(one.samples(), 3);
    }

    #[test]
    fn unvisited_samples_are_not_counted() {
        let method = Method::default();
        let mut samples = Samples::new(&method, 2, [3]);
        let labelled = LabelledSamples::new(&method, &[9]);
        assert!(SampleMargins::of(&labelled, &samples).is_empty());
        let logits = Matrix::new(&[0.0, 2.0], 1, 2).unwrap();
        samples.visit_unlabelled(&method, 0, &[1], logits, true).unwrap();
        // 0.997 · 2 = 1.994 of class 1; −1.994 of class 0.
        assert_eq!(SampleMargins::of(&labelled, &samples).unlabelled, of(&[1.994]));
    }

    #[test]
    fn margins_are_means_of_halves() {
        let difficulty = Difficulty {
            aum: vec![1.0, 4.0, 3.0],
            apm: vec![],
            labelled: Halves { easy: vec![1, 2], hard: vec![0] },
            unlabelled: Halves::default(),
        };
        let margins = Margins::of(&difficulty);
        assert_eq!(margins.labelled, EasyHard { easy: Some(3.5), hard: Some(1.0) });
        assert_eq!(margins.unlabelled, EasyHard { easy: None, hard: None });
    }
}
