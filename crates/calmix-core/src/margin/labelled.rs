//! AUM of the labelled samples: a sum and a count each.

use serde::{Deserialize, Serialize};

use crate::samples::StateError;

/// The areas under the margin of the labelled samples: a plain mean over visits.
///
/// Labelled samples are few and their ids are scattered over the dataset, so the store is a sorted list of
/// ids: 20 bytes a labelled sample, nothing for the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "LabelledParts", into = "LabelledParts")]
pub struct LabelledMargins {
    parts: LabelledParts,
}

/// [`LabelledMargins`] as plain data, for checkpoints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelledParts {
    /// The labelled samples, ascending.
    pub ids: Vec<u64>,
    /// The sum of each one's margins.
    pub sums: Vec<f64>,
    /// How often each was visited.
    pub visits: Vec<u32>,
}

impl LabelledMargins {
    /// A store for these samples, in any order, that no visit has touched.
    pub fn new(ids: &[u64]) -> Self {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let (sums, visits) = (vec![0.0; ids.len()], vec![0; ids.len()]);
        Self { parts: LabelledParts { ids, sums, visits } }
    }

    /// Takes in the margin of one visit.
    ///
    /// # Errors
    /// If the sample is not one of the labelled ones.
    pub fn visit(&mut self, sample: u64, margin: f64) -> Result<(), StateError> {
        let at = self.position(sample)?;
        self.parts.sums[at] += margin;
        self.parts.visits[at] = self.parts.visits[at].saturating_add(1);
        Ok(())
    }

    /// The AUM of a sample; zero before its first visit.
    ///
    /// # Errors
    /// If the sample is not one of the labelled ones.
    pub fn aum(&self, sample: u64) -> Result<f64, StateError> {
        let at = self.position(sample)?;
        Ok(self.parts.sums[at] / f64::from(self.parts.visits[at].max(1)))
    }

    /// One sample as it is: the sum of its margins, and how often it was visited.
    ///
    /// # Errors
    /// If the sample is not one of the labelled ones.
    pub fn sample(&self, sample: u64) -> Result<(f64, u32), StateError> {
        let at = self.position(sample)?;
        Ok((self.parts.sums[at], self.parts.visits[at]))
    }

    /// Puts a sample back to what [`sample`](Self::sample) said of it before.
    ///
    /// # Errors
    /// If the sample is not one of the labelled ones.
    pub fn put_back(&mut self, sample: u64, (sum, visits): (f64, u32)) -> Result<(), StateError> {
        let at = self.position(sample)?;
        (self.parts.sums[at], self.parts.visits[at]) = (sum, visits);
        Ok(())
    }

    /// The store as plain data, without a copy.
    pub fn parts(&self) -> &LabelledParts {
        &self.parts
    }

    fn position(&self, sample: u64) -> Result<usize, StateError> {
        self.parts.ids.binary_search(&sample).map_err(|_| StateError::UnknownSample { sample })
    }
}

impl From<LabelledMargins> for LabelledParts {
    fn from(store: LabelledMargins) -> Self {
        store.parts
    }
}

impl TryFrom<LabelledParts> for LabelledMargins {
    type Error = StateError;

    fn try_from(parts: LabelledParts) -> Result<Self, StateError> {
        let LabelledParts { ids, sums, visits } = &parts;
        if ids.len() != sums.len() || ids.len() != visits.len() {
            return Err(StateError::Damaged { what: "labelled margins: columns of different lengths" });
        }
        if !ids.is_sorted_by(|a, b| a < b) {
            return Err(StateError::Damaged { what: "labelled margins: ids not ascending" });
        }
        if sums.iter().any(|s| s.is_nan()) {
            return Err(StateError::Damaged { what: "labelled margins: not a number among the sums" });
        }
        Ok(Self { parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aum_is_the_mean_over_all_visits() {
        let mut store = LabelledMargins::new(&[40, 7, 7]);
        for (sample, margin) in [(40, 1.0), (7, -2.0), (40, 4.0)] {
            store.visit(sample, margin).unwrap();
        }
        assert_eq!((store.aum(40).unwrap(), store.aum(7).unwrap()), (2.5, -2.0));
        assert!(matches!(store.visit(8, 0.0), Err(StateError::UnknownSample { sample: 8 })));
    }

    #[test]
    fn damaged_parts_are_refused() {
        let good = LabelledParts { ids: vec![1, 2], sums: vec![0.0; 2], visits: vec![0; 2] };
        assert!(LabelledMargins::try_from(good.clone()).is_ok());
        for bad in [
            LabelledParts { ids: vec![2, 1], ..good.clone() },
            LabelledParts { ids: vec![1, 1], ..good.clone() },
            LabelledParts { visits: vec![0], ..good.clone() },
            LabelledParts { sums: vec![f64::NAN; 2], ..good },
        ] {
            assert!(LabelledMargins::try_from(bad).is_err());
        }
    }
}
