//! APM of every sample for every class, exactly: N × C f32.

use crate::error::CoreError;
use serde::{Deserialize, Serialize};

use super::{Averaging, top_two};

/// The average pseudo-margins of samples `0..N` for all classes, with one visit count per sample.
///
/// The arithmetic of a visit is f64 and the stored value f32. 4·(C + 1) bytes per sample: exact, and meant for
/// up to a few million samples.
///
/// ```
/// use calmix_core::margin::{Averaging, MarginStore};
///
/// let mut store = MarginStore::new(Averaging::default(), 10, 3);
/// store.visit(7, &[2.0, 1.0, -1.0])?;
/// assert_eq!(store.apm(7, 0)?, 0.997);
/// # Ok::<(), calmix_core::error::CoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "MarginParts", into = "MarginParts")]
pub struct MarginStore {
    parts: MarginParts,
}

/// A [`MarginStore`] as plain data, for checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarginParts {
    /// The rule by which margins are averaged.
    pub averaging: Averaging,
    /// C, the number of classes.
    pub classes: usize,
    /// The number of visits to each sample.
    pub visits: Vec<u32>,
    /// APM of each sample and class, sample by sample.
    pub values: Vec<f32>,
}

impl MarginStore {
    /// Creates a store for samples `0..samples`, without visits.
    pub fn new(averaging: Averaging, samples: usize, classes: usize) -> Self {
        let (visits, values) = (vec![0; samples], vec![0.0; samples * classes]);
        Self { parts: MarginParts { averaging, classes, visits, values } }
    }

    /// Returns the size of a store, in bytes.
    pub fn bytes(samples: usize, classes: usize) -> u64 {
        (samples as u64).saturating_mul(4).saturating_mul((classes as u64).saturating_add(1))
    }

    /// Adds one visit to one sample: every class moves by the same step size (Eq. 3–5).
    ///
    /// # Errors
    /// If there is no such sample or `logits` does not have C numbers.
    pub fn visit(&mut self, sample: u64, logits: &[f32]) -> Result<(), CoreError> {
        let at = self.position(sample)?;
        let MarginParts { averaging, classes, visits, values } = &mut self.parts;
        check_classes(*classes, logits.len())?;
        let w = averaging.step_size(visits[at]);
        let (top, first, second) = top_two(logits);
        let row = &mut values[at * *classes..(at + 1) * *classes];
        let average = |a: f32, pm: f64| (f64::from(a) + w * (pm - f64::from(a))) as f32;
        let before = row.get(top).copied();
        for (a, &z) in row.iter_mut().zip(logits) {
            *a = average(*a, f64::from(z) - first);
        }
        if let Some(before) = before {
            row[top] = average(before, first - second);
        }
        visits[at] = visits[at].saturating_add(1);
        Ok(())
    }

    /// Returns the APM of a sample for one class.
    ///
    /// # Errors
    /// If there is no such sample or class.
    pub fn apm(&self, sample: u64, class: u32) -> Result<f32, CoreError> {
        let at = self.position(sample)?;
        let classes = self.parts.classes;
        if class as usize >= classes {
            return Err(CoreError::Classes { expected: classes, got: class as usize + 1 });
        }
        Ok(self.parts.values[at * classes + class as usize])
    }

    /// Returns the state of one sample: the number of its visits, and its APM for each class.
    ///
    /// # Errors
    /// If there is no such sample.
    pub fn sample(&self, sample: u64) -> Result<(u32, &[f32]), CoreError> {
        let at = self.position(sample)?;
        let MarginParts { classes, visits, values, .. } = &self.parts;
        Ok((visits[at], &values[at * classes..(at + 1) * classes]))
    }

    /// Restores a sample to a state that [`sample`](Self::sample) returned before.
    ///
    /// # Errors
    /// If there is no such sample, or `apm` does not have C numbers.
    pub fn restore(&mut self, sample: u64, visited: u32, apm: &[f32]) -> Result<(), CoreError> {
        let at = self.position(sample)?;
        let MarginParts { classes, visits, values, .. } = &mut self.parts;
        check_classes(*classes, apm.len())?;
        visits[at] = visited;
        values[at * *classes..(at + 1) * *classes].copy_from_slice(apm);
        Ok(())
    }

    /// Returns the store as plain data, without a copy.
    pub fn parts(&self) -> &MarginParts {
        &self.parts
    }

    fn position(&self, sample: u64) -> Result<usize, CoreError> {
        usize::try_from(sample)
            .ok()
            .filter(|&at| at < self.parts.visits.len())
            .ok_or(CoreError::UnknownSample { sample })
    }
}

fn check_classes(expected: usize, got: usize) -> Result<(), CoreError> {
    if expected == got { Ok(()) } else { Err(CoreError::Classes { expected, got }) }
}

impl From<MarginStore> for MarginParts {
    fn from(store: MarginStore) -> Self {
        store.parts
    }
}

impl TryFrom<MarginParts> for MarginStore {
    type Error = CoreError;

    fn try_from(parts: MarginParts) -> Result<Self, CoreError> {
        let needed = parts.visits.len().checked_mul(parts.classes);
        if needed != Some(parts.values.len()) {
            return Err(CoreError::Damaged { what: "margins: not one value per sample and class" });
        }
        if parts.values.iter().any(|v| v.is_nan()) {
            return Err(CoreError::Damaged { what: "margins: not a number among the values" });
        }
        Ok(Self { parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worked example, computed independently.
    #[test]
    fn apm_of_three_visits() {
        let mut store = MarginStore::new(Averaging::default(), 1, 3);
        let visits: [([f32; 3], [f32; 3], u32, f32); 3] = [
            ([2.0, 1.0, -1.0], [0.997, -0.997, -2.991], 0, 0.997),
            ([1.5, 1.8, 0.0], [0.350_446, -0.350_446, -2.397_286], 1, -0.350_446),
            ([3.0, 0.5, 0.2], [1.064_814, -1.064_814, -2.531_122], 0, 1.064_814),
        ];
        for (logits, expected, pseudo, apm) in visits {
            store.visit(0, &logits).unwrap();
            for (a, e) in store.parts().values.iter().zip(expected) {
                assert!((a - e).abs() < 1e-6, "{a} is not {e}");
            }
            assert!((store.apm(0, pseudo).unwrap() - apm).abs() < 1e-6);
        }
    }

    #[test]
    fn a_sample_twice_in_a_batch_counts_twice() {
        let mut store = MarginStore::new(Averaging::default(), 2, 2);
        for sample in [1, 0, 1] {
            store.visit(sample, &[1.0, 0.0]).unwrap();
        }
        assert_eq!(store.parts().visits, [1, 2]);
    }

    #[test]
    fn wrong_samples_and_widths_are_refused() {
        let mut store = MarginStore::new(Averaging::default(), 2, 2);
        assert!(store.visit(2, &[0.0, 0.0]).is_err());
        assert!(store.visit(u64::MAX, &[0.0, 0.0]).is_err());
        assert!(store.visit(0, &[0.0]).is_err());
        assert!(store.apm(0, 2).is_err());
        let mut parts = MarginParts::from(store);
        parts.values.pop();
        assert!(MarginStore::try_from(parts).is_err());
    }

    #[test]
    fn one_class_has_no_margin() {
        let mut store = MarginStore::new(Averaging::default(), 1, 1);
        store.visit(0, &[9.0]).unwrap();
        assert_eq!(store.apm(0, 0).unwrap(), 0.0);
    }
}
