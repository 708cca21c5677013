//! The most likely temperature.

use calmix_core::matrix::MatrixOf;
use calmix_core::matrix::number::Number;

use super::newton::{Objective, minimise, no_worse};
use super::{LabelledLogits, Temperature, nll_sum, pairs};
use crate::checked;
use crate::error::MetricsError;

impl Temperature {
    /// Fits the temperature between [`COLDEST`](super::COLDEST) and [`HOTTEST`](super::HOTTEST) with the smallest NLL on these rows.
    ///
    /// Never worse in NLL than [`Temperature::IDENTITY`], which is also the result if the rows carry no information:
    /// a single class, or equal logits in every row.
    ///
    /// # Errors
    /// If there are no rows, labels and rows do not match, or a logit is not finite.
    pub fn fit<T: Number>(logits: MatrixOf<'_, T>, labels: &[u32]) -> Result<Self, MetricsError> {
        checked::logits(logits, labels)?;
        checked::not_empty(labels)?;
        Ok(fit_rows(&pairs(logits, labels)))
    }
}

/// Fits on checked rows with their labels.
fn fit_rows<'a, T: Number + 'a>(rows: &(impl Iterator<Item = LabelledLogits<'a, T>> + Clone)) -> Temperature {
    let start = Objective::nll(rows.clone(), 1.0);
    let best = minimise(start, |beta| Objective::nll(rows.clone(), beta));
    no_worse(best, start, |temperature| nll_sum(rows.clone(), temperature))
}
