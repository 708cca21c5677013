//! AUM of the labelled samples: an average and a count each.

use super::Averaging;
use crate::error::CoreError;

/// AUM of each labelled sample: its margins, averaged over visits by the same rule as APM.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledMargins {
    averaging: Averaging,
    parts: LabelledParts,
}

/// [`LabelledMargins`] as plain data, for checkpoints.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LabelledParts {
    /// The labelled samples, ascending.
    pub ids: Vec<u64>,
    /// The average margin of each sample.
    pub averages: Vec<f64>,
    /// The number of visits to each sample.
    pub visits: Vec<u32>,
}

impl LabelledMargins {
    /// Creates a store for these samples, in any order, without visits.
    pub fn new(averaging: Averaging, ids: &[u64]) -> Self {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let (averages, visits) = (vec![0.0; ids.len()], vec![0; ids.len()]);
        Self { averaging, parts: LabelledParts { ids, averages, visits } }
    }

    /// Adds the margin of one visit.
    ///
    /// # Errors
    /// If the sample is not one of the labelled ones.
    pub fn visit(&mut self, sample: u64, margin: f64) -> Result<(), CoreError> {
        let at = self.position(sample)?;
        let (average, visits) = (&mut self.parts.averages[at], self.parts.visits[at]);
        *average += self.averaging.aum_step_size(visits) * (margin - *average);
        self.parts.visits[at] = self.parts.visits[at].saturating_add(1);
        Ok(())
    }

    /// Returns the AUM of a sample; zero before its first visit.
    ///
    /// # Errors
    /// If the sample is not one of the labelled ones.
    pub fn aum(&self, sample: u64) -> Result<f64, CoreError> {
        let at = self.position(sample)?;
        Ok(self.parts.averages[at])
    }

    /// Returns the state of one sample: the average of its margins, and the number of its visits.
    ///
    /// # Errors
    /// If the sample is not one of the labelled ones.
    pub fn sample(&self, sample: u64) -> Result<(f64, u32), CoreError> {
        let at = self.position(sample)?;
        Ok((self.parts.averages[at], self.parts.visits[at]))
    }

    /// Restores a sample to a state that [`sample`](Self::sample) returned before.
    ///
    /// # Errors
    /// If the sample is not one of the labelled ones.
    pub fn restore(&mut self, sample: u64, (average, visits): (f64, u32)) -> Result<(), CoreError> {
        let at = self.position(sample)?;
        (self.parts.averages[at], self.parts.visits[at]) = (average, visits);
        Ok(())
    }

    /// Creates a store from plain data.
    ///
    /// # Errors
    /// If the columns contradict each other.
    pub fn from_parts(averaging: Averaging, parts: LabelledParts) -> Result<Self, CoreError> {
        let LabelledParts { ids, averages, visits } = &parts;
        if ids.len() != averages.len() || ids.len() != visits.len() {
            return Err(CoreError::Damaged { what: "labelled margins: columns of different lengths" });
        }
        if !ids.is_sorted_by(|a, b| a < b) {
            return Err(CoreError::Damaged { what: "labelled margins: ids not ascending" });
        }
        if averages.iter().any(|average| average.is_nan()) {
            return Err(CoreError::Damaged { what: "labelled margins: not a number among the averages" });
        }
        Ok(Self { averaging, parts })
    }

    /// Returns the rule by which margins are averaged.
    pub fn averaging(&self) -> Averaging {
        self.averaging
    }

    /// Returns the store as plain data, without a copy.
    pub fn parts(&self) -> &LabelledParts {
        &self.parts
    }

    fn position(&self, sample: u64) -> Result<usize, CoreError> {
        self.parts.ids.binary_search(&sample).map_err(|_| CoreError::UnknownSample { sample })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aum_is_the_mean_over_all_visits() {
        let mut store = LabelledMargins::new(Averaging::default(), &[40, 7, 7]);
        for (sample, margin) in [(40, 1.0), (7, -2.0), (40, 4.0)] {
            store.visit(sample, margin).unwrap();
        }
        assert_eq!((store.aum(40).unwrap(), store.aum(7).unwrap()), (2.5, -2.0));
        assert!(matches!(store.visit(8, 0.0), Err(CoreError::UnknownSample { sample: 8 })));
    }

    #[test]
    fn an_exponential_average_forgets_early_margins() {
        let mut store = LabelledMargins::new(Averaging::Exponential { rho: 0.5 }, &[1]);
        for margin in [8.0, 2.0, -1.0] {
            store.visit(1, margin).unwrap();
        }
        // Weights 1/7, 2/7 and 4/7.
        assert!((store.aum(1).unwrap() - 8.0 / 7.0).abs() < 1e-15);
    }

    #[test]
    fn damaged_parts_are_refused() {
        let read = |parts| LabelledMargins::from_parts(Averaging::default(), parts);
        let good = LabelledParts { ids: vec![1, 2], averages: vec![0.0; 2], visits: vec![0; 2] };
        assert!(read(good.clone()).is_ok());
        for bad in [
            LabelledParts { ids: vec![2, 1], ..good.clone() },
            LabelledParts { ids: vec![1, 1], ..good.clone() },
            LabelledParts { visits: vec![0], ..good.clone() },
            LabelledParts { averages: vec![f64::NAN; 2], ..good },
        ] {
            assert!(read(bad).is_err());
        }
    }
}
