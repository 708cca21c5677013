//! The most likely temperature: Newton's method on a convex function of β = 1/T, in few passes over the rows.

use calmix_core::matrix::{MatrixOf, Scalar};

use super::{LabelledRow, MAX_TEMPERATURE, MIN_TEMPERATURE, Temperature, nll_sum, pairs};
use crate::checked;
use crate::error::MetricsError;
use crate::exponential::RelativeRow;

impl Temperature {
    /// Fits the temperature between [`MIN_TEMPERATURE`] and [`MAX_TEMPERATURE`] with the smallest NLL on these rows.
    ///
    /// Never worse in NLL than [`Temperature::IDENTITY`], which is also the result if the rows carry no information:
    /// a single class, or equal logits in every row.
    ///
    /// # Errors
    /// If there are no rows, labels and rows do not match, or a logit is not finite.
    pub fn fit<T: Scalar>(logits: MatrixOf<'_, T>, labels: &[u32]) -> Result<Self, MetricsError> {
        checked::fit_rows(logits, labels)?;
        let rows = pairs(logits, labels);
        let start = Objective::nll(rows.clone(), 1.0);
        let best = minimise(start, |beta| Objective::nll(rows.clone(), beta));
        Ok(no_worse(best, start, |temperature| nll_sum(rows.clone(), temperature)))
    }
}

/// The value of a function of β at one point, with its first two derivatives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Objective {
    pub(super) value: f64,
    pub(super) slope: f64,
    pub(super) curvature: f64,
}

/// The result of a minimisation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Minimum {
    pub(super) temperature: Temperature,
    /// The value at the last β for which it was computed, which is the minimum or next to it.
    pub(super) value: f64,
}

/// The size of the last Newton step, relative to β: a smaller step leaves an error of about its square.
const LAST_STEP: f64 = 1e-8;

/// The relative difference above which rounding cannot have changed the order of two values.
const CLEAR_GAIN: f64 = 1e-9;

impl Objective {
    /// Computes the summed NLL of checked rows, Σ (E z − z of the label) and Σ Var z under softmax(β·z), in one pass.
    pub(super) fn nll<'a, T: Scalar + 'a>(rows: impl Iterator<Item = LabelledRow<'a, T>>, beta: f64) -> Self {
        let mut sum = Self { value: 0.0, slope: 0.0, curvature: 0.0 };
        for (row, label) in rows {
            let row = RelativeRow::new(row);
            let label_logit = row.below_top(label as usize);
            let moments = row.moments(beta);
            sum.value += libm::log(moments.mass) - beta * label_logit;
            sum.slope += moments.mean - label_logit;
            sum.curvature += moments.variance;
        }
        sum
    }
}

/// Finds the temperature within the bounds at which a convex function of β is smallest, from its value at β = 1.
pub(super) fn minimise(start: Objective, objective: impl Fn(f64) -> Objective) -> Minimum {
    minimise_between([1.0 / MAX_TEMPERATURE, 1.0 / MIN_TEMPERATURE], 1.0, start, objective)
}

/// Finds the temperature at which a convex function of β is smallest, for β between two bounds, from its value at a β
/// between them.
pub(super) fn minimise_between(
    [mut low, mut high]: [f64; 2],
    mut beta: f64,
    start: Objective,
    objective: impl Fn(f64) -> Objective,
) -> Minimum {
    let mut at = start;
    // Whether the minimum has been shown to lie between `low` and `high`: one of them may still be a bound.
    let mut bracketed = false;
    let mut last_step = f64::INFINITY;
    // At least every second step halves the bracket or the step: 200 are more than two roundings apart.
    for _ in 0..200 {
        if at.slope < 0.0 {
            low = beta;
        } else if at.slope > 0.0 {
            high = beta;
        } else {
            break;
        }
        let newton = beta - at.slope / at.curvature;
        let mut next = newton;
        if !(newton > low && newton < high && (newton - beta).abs() <= 0.5 * last_step) {
            if !bracketed {
                let bound = if at.slope < 0.0 { high } else { low };
                let at_bound = objective(bound);
                if at_bound.slope == 0.0 || (at_bound.slope < 0.0) == (at.slope < 0.0) {
                    return Minimum { temperature: Temperature(1.0 / bound), value: at_bound.value };
                }
                bracketed = true;
            }
            next = (low * high).sqrt();
        }
        last_step = (next - beta).abs();
        if last_step <= f64::EPSILON * beta {
            break;
        }
        beta = next;
        if next == newton && last_step <= LAST_STEP * beta {
            break;
        }
        let before = at.slope;
        at = objective(beta);
        bracketed |= (at.slope < 0.0) != (before < 0.0);
    }
    Minimum { temperature: Temperature(1.0 / beta), value: at.value }
}

/// Returns the temperature of the minimum, or [`Temperature::IDENTITY`] if it is not better: rounding must never make the
/// result worse than no calibration. Only an unclear gain costs two more passes.
pub(super) fn no_worse(
    best: Minimum,
    start: Objective,
    objective: impl Fn(Temperature) -> f64,
) -> Temperature {
    let clearly = start.value - best.value > CLEAR_GAIN * start.value.abs();
    if clearly || objective(best.temperature) < objective(Temperature::IDENTITY) {
        best.temperature
    } else {
        Temperature::IDENTITY
    }
}
