//! What a run remembers of each sample, and who may hold it.
//!
//! [`plan_step`](crate::plan::plan_step) reaches the memory of single samples through [`SampleState`] alone.
//! One process holds all of it in a [`LocalState`]; many processes each own a part and exchange the rows of a
//! batch, and the plan cannot tell the difference.

use std::{error, fmt};

use serde::{Deserialize, Serialize};

use crate::margin::{LabelledMargins, MarginStore};
use crate::matrix::Matrix;

/// The memory of single samples, and the sums that all groups of a step share.
///
/// All methods are called once a step by every process of a group, with the group's whole batch. The values
/// that come back include this very visit: no sample is judged before it was seen.
pub trait SampleState {
    /// Takes in the margins of a labelled batch; the AUM of each row after it.
    ///
    /// # Errors
    /// If a sample is unknown or the exchange with other processes fails.
    fn visit_labelled(&mut self, ids: &[u64], margins: &[f64]) -> Result<Vec<f64>, StateError>;

    /// Takes in the logits of an unlabelled batch; the APM of each row at its pseudo-label after it.
    ///
    /// # Errors
    /// If a sample is unknown or the exchange with other processes fails.
    fn visit_unlabelled(
        &mut self,
        ids: &[u64],
        logits: Matrix<'_>,
        pseudo: &[u32],
    ) -> Result<Vec<f64>, StateError>;

    /// FlexMatch: remembers the label of each row that has one in `selected`; what was remembered before,
    /// row by row (a sample that occurs twice has its first label before its second).
    ///
    /// # Errors
    /// If a sample is unknown or the exchange with other processes fails.
    fn remember_selected(
        &mut self,
        ids: &[u64],
        selected: &[Option<u32>],
    ) -> Result<Vec<Option<u32>>, StateError>;

    /// Adds up `sums` over all groups of this step, so that statistics of the method are global.
    ///
    /// # Errors
    /// If the exchange with other processes fails.
    fn sum_over_groups(&mut self, sums: &mut [f64]) -> Result<(), StateError>;
}

/// Why the memory of a sample could not be reached.
#[derive(Debug)]
#[non_exhaustive]
pub enum StateError {
    /// An id that the store was not made for.
    UnknownSample {
        /// The id.
        sample: u64,
    },
    /// A row with another number of classes.
    Classes {
        /// Classes of the store.
        expected: usize,
        /// Classes of the row.
        got: usize,
    },
    /// The method asks for something this state was not made to keep.
    NotKept {
        /// What was asked for.
        what: &'static str,
    },
    /// Plain data that is no valid state.
    Damaged {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The processes that own the samples could not be reached.
    Exchange(Box<dyn error::Error + Send + Sync>),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSample { sample } => write!(f, "sample {sample} is not in this store"),
            Self::Classes { expected, got } => {
                write!(f, "the store has {expected} classes, the row speaks of {got}")
            }
            Self::NotKept { what } => {
                write!(f, "this state does not keep {what}: it was made for another method")
            }
            Self::Damaged { what } => write!(f, "damaged state: {what}"),
            Self::Exchange(_) => f.write_str("the exchange with other processes failed"),
        }
    }
}

impl error::Error for StateError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Exchange(cause) => Some(cause.as_ref()),
            _ => None,
        }
    }
}

/// The memory of all samples in one process: only what the method needs is kept.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalState {
    /// AUM, where pairs are guided by difficulty.
    pub labelled: Option<LabelledMargins>,
    /// APM, where pairs are guided by difficulty.
    pub unlabelled: Option<MarginStore>,
    /// FlexMatch's last confident label of each sample, −1 where there was none.
    pub selected: Option<Vec<i32>>,
}

impl SampleState for LocalState {
    fn visit_labelled(&mut self, ids: &[u64], margins: &[f64]) -> Result<Vec<f64>, StateError> {
        let store = self.labelled.as_mut().ok_or(StateError::NotKept { what: "labelled margins" })?;
        for (&id, &margin) in ids.iter().zip(margins) {
            store.visit(id, margin)?;
        }
        ids.iter().map(|&id| store.aum(id)).collect()
    }

    fn visit_unlabelled(
        &mut self,
        ids: &[u64],
        logits: Matrix<'_>,
        pseudo: &[u32],
    ) -> Result<Vec<f64>, StateError> {
        let store = self.unlabelled.as_mut().ok_or(StateError::NotKept { what: "pseudo-margins" })?;
        for (&id, row) in ids.iter().zip(logits.iter()) {
            store.visit(id, row)?;
        }
        ids.iter().zip(pseudo).map(|(&id, &class)| store.apm(id, class).map(f64::from)).collect()
    }

    fn remember_selected(
        &mut self,
        ids: &[u64],
        selected: &[Option<u32>],
    ) -> Result<Vec<Option<u32>>, StateError> {
        let labels = self.selected.as_mut().ok_or(StateError::NotKept { what: "selected labels" })?;
        ids.iter()
            .zip(selected)
            .map(|(&id, &new)| {
                let label = usize::try_from(id)
                    .ok()
                    .and_then(|at| labels.get_mut(at))
                    .ok_or(StateError::UnknownSample { sample: id })?;
                let before = u32::try_from(*label).ok();
                if let Some(new) = new {
                    *label =
                        i32::try_from(new).map_err(|_| StateError::NotKept { what: "so large a class" })?;
                }
                Ok(before)
            })
            .collect()
    }

    fn sum_over_groups(&mut self, _sums: &mut [f64]) -> Result<(), StateError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::margin::Averaging;

    fn state() -> LocalState {
        LocalState {
            labelled: Some(LabelledMargins::new(&[3])),
            unlabelled: Some(MarginStore::new(Averaging::PAPER, 4, 2)),
            selected: Some(vec![-1; 4]),
        }
    }

    #[test]
    fn labels_are_overwritten_never_forgotten() {
        let mut state = state();
        assert_eq!(
            state.remember_selected(&[1, 1, 2], &[Some(0), Some(1), None]).unwrap(),
            [None, Some(0), None]
        );
        assert_eq!(state.remember_selected(&[1, 2], &[None, Some(1)]).unwrap(), [Some(1), None]);
        assert_eq!(state.selected, Some(vec![-1, 1, 1, -1]));
    }

    #[test]
    fn values_include_the_visit_itself() {
        let mut state = state();
        assert_eq!(state.visit_labelled(&[3, 3], &[1.0, 2.0]).unwrap(), [1.5, 1.5]);
        let logits = [2.0, 0.0];
        let apm = state.visit_unlabelled(&[0], Matrix::new(&logits, 1, 2).unwrap(), &[0]).unwrap();
        assert!((apm[0] - 0.997 * 2.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_not_kept_is_said() {
        let mut none = LocalState::default();
        let error = none.visit_labelled(&[0], &[0.0]).unwrap_err().to_string();
        assert_eq!(error, "this state does not keep labelled margins: it was made for another method");
        assert!(state().remember_selected(&[9], &[None]).is_err());
    }
}
