//! The assignment of rows to bins.

use std::borrow::Cow;
use std::num::NonZeroU16;

use crate::measure::top_label::Ties;
use crate::measure::{Binning, Counts, Edges};

/// The bin of every row.
#[derive(Debug, Clone)]
pub(in crate::measure) struct Assignment {
    /// The ends of each bin.
    pub(in crate::measure) ranges: Vec<(f64, f64)>,
    /// The bin of every row; arbitrary for a row that does not count.
    pub(in crate::measure) bin: Vec<usize>,
}

/// Assigns rows to bins, for any counts.
#[derive(Debug, Clone)]
pub(in crate::measure) enum Assigner {
    /// Bins of equal width do not depend on the counts.
    EqualWidth(Assignment),
    /// Bins of equal mass move with the counts.
    EqualMass {
        /// The rows in the order of confidence.
        ties: Ties,
        bins: NonZeroU16,
    },
}

impl Assigner {
    pub(in crate::measure) fn new(confidence: &[f64], binning: Binning) -> Self {
        match binning {
            Binning::EqualWidth { bins, edges } => {
                let widths = EqualWidth::new(bins, edges);
                let bin = confidence.iter().map(|&c| widths.bin(c)).collect();
                Self::EqualWidth(Assignment { bin, ranges: widths.ranges })
            }
            Binning::EqualMass { bins } => Self::EqualMass { ties: Ties::new(confidence), bins },
        }
    }

    pub(in crate::measure) fn assign(&self, confidence: &[f64], counts: &Counts) -> Cow<'_, Assignment> {
        match self {
            Self::EqualWidth(assignment) => Cow::Borrowed(assignment),
            Self::EqualMass { ties, bins } => Cow::Owned(equal_mass(ties, *bins, confidence, counts)),
        }
    }
}

/// Bins of equal width between 0 and 1.
#[derive(Debug, Clone)]
pub(in crate::measure) struct EqualWidth {
    /// The ends of each bin.
    pub(in crate::measure) ranges: Vec<(f64, f64)>,
    /// The edges between two bins.
    inner: Vec<f64>,
    edges: Edges,
}

impl EqualWidth {
    pub(in crate::measure) fn new(bins: NonZeroU16, edges: Edges) -> Self {
        // The quotient is the f64 nearest to the edge. `np.linspace` and `torch.linspace` multiply a rounded
        // step and may be off by one unit in the last place: 0.30000000000000004 for the third of ten.
        let edge = |i: u16| f64::from(i) / f64::from(bins.get());
        let mut ranges: Vec<(f64, f64)> = (0..bins.get()).map(|i| (edge(i), edge(i + 1))).collect();
        if edges == Edges::Torchmetrics {
            ranges.push((1.0, 1.0));
        }
        Self { ranges, inner: (1..bins.get()).map(edge).collect(), edges }
    }

    /// Returns the end of the lowest bin: exactly the confidences below it are in that bin.
    pub(in crate::measure) fn end_of_lowest(&self) -> f64 {
        match (self.inner.first(), self.edges) {
            (Some(edge), Edges::RightClosed) => edge.next_up(),
            (Some(&edge), _) => edge,
            (None, Edges::Torchmetrics) => 1.0,
            (None, _) => f64::INFINITY,
        }
    }

    pub(in crate::measure) fn bin(&self, confidence: f64) -> usize {
        match self.edges {
            Edges::RightClosed => self.inner.partition_point(|&edge| edge < confidence),
            Edges::Torchmetrics if confidence == 1.0 => self.inner.len() + 1,
            Edges::LeftClosed | Edges::Torchmetrics => self.inner.partition_point(|&edge| edge <= confidence),
        }
    }
}

/// Assigns equal confidences to the bin of the middle of their ranks. A row has as many ranks as its count.
fn equal_mass(ties: &Ties, bins: NonZeroU16, confidence: &[f64], counts: &Counts) -> Assignment {
    let twice_n = 2 * counts.total() as u128;
    let mut ranges: Vec<(f64, f64)> = Vec::new();
    let mut bin = vec![0; confidence.len()];
    // Compare ranks with the end of the bin: a division for every run would be the most expensive operation here.
    let mut first = 0;
    let mut end = 0;
    for run in ties.runs() {
        let count: f64 = run.iter().map(|&row| counts.of_row()[row]).sum();
        if count == 0.0 {
            continue;
        }
        let value = confidence[run[0]];
        let next = first + count as u64;
        let middle = u128::from(first + next - 1) * u128::from(bins.get());
        if middle >= end {
            ranges.push((value, value));
            end = (middle / twice_n + 1) * twice_n;
        }
        let current = ranges.len() - 1;
        ranges[current].1 = value;
        for &row in run {
            bin[row] = current;
        }
        first = next;
    }
    Assignment { ranges, bin }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_bin_ends_where_the_next_begins() {
        for edges in [Edges::LeftClosed, Edges::RightClosed, Edges::Torchmetrics] {
            for bins in 1..40_u16 {
                let widths = EqualWidth::new(NonZeroU16::new(bins).unwrap(), edges);
                let edge = 1.0 / f64::from(bins);
                for confidence in [0.0, edge.next_down(), edge, edge.next_up().min(1.0), 1.0] {
                    let is_lowest = confidence < widths.end_of_lowest();
                    assert_eq!(is_lowest, widths.bin(confidence) == 0, "{edges:?} {bins} {confidence}");
                }
            }
        }
    }

    #[test]
    fn equal_mass_follows_the_counts() {
        let confidence = [0.4, 0.1, 0.3, 0.2];
        let assigner =
            Assigner::new(&confidence, Binning::EqualMass { bins: NonZeroU16::MIN.saturating_add(1) });
        let mut counts = Counts::once(4);
        assert_eq!(assigner.assign(&confidence, &counts).bin, [1, 0, 1, 0]);
        counts.draw(&[1, 1, 0, 3]);
        let moved = assigner.assign(&confidence, &counts);
        assert_eq!((moved.bin[1], moved.bin[3], moved.bin[0]), (0, 1, 1));
        assert_eq!(moved.ranges, [(0.1, 0.1), (0.2, 0.4)]);
        counts.draw(&[]);
        assert!(assigner.assign(&confidence, &counts).ranges.is_empty());
    }
}
