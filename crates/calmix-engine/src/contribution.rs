//! What a part adds to a step: its gradient, its running statistics and its losses, in one buffer, so that one sum over
//! all parts of the step is one exchange.

use tch::{Kind, TchError, Tensor};

use crate::error::EngineError;
use crate::terms::Terms;

/// L_L, L_U, L_mix and their sum.
const LOSSES: i64 = 4;

/// The sum of all parts' contributions.
pub(crate) struct Sum {
    pub(crate) gradient: Tensor,
    pub(crate) statistics: Tensor,
    pub(crate) losses: Tensor,
}

/// What one part adds: the gradient of its total loss, then statistics, then losses.
pub(crate) fn contribution(
    gradient: &Tensor,
    statistics: &Tensor,
    terms: &Terms,
    total: &Tensor,
) -> Result<Tensor, TchError> {
    let losses = [&terms.labelled, &terms.unlabelled, &terms.mix, total];
    let losses = Tensor::f_stack(&losses, 0)?.f_detach()?.f_to_kind(Kind::Float)?;
    Tensor::f_cat(&[gradient, statistics, &losses], 0)
}

impl Sum {
    /// Takes a sum over `parts` parts in `groups` groups apart: a step learns the mean over its groups, and BatchNorm
    /// remembers the mean over all parts.
    pub(crate) fn of(
        sum: &Tensor,
        parameters: i64,
        parts: usize,
        groups: usize,
    ) -> Result<Self, EngineError> {
        let statistics = sum.numel() as i64 - parameters - LOSSES;
        if statistics < 0 {
            return Err(EngineError::Misfit("a sum that is too short".to_owned()));
        }
        let mut gradient = sum.f_narrow(0, 0, parameters)?;
        let mut of_norms = sum.f_narrow(0, parameters, statistics)?;
        let mut losses = sum.f_narrow(0, parameters + statistics, LOSSES)?;
        if groups > 1 {
            let _ = gradient.f_div_scalar_(groups as f64)?;
            let _ = losses.f_div_scalar_(groups as f64)?;
        }
        if parts > 1 {
            let _ = of_norms.f_div_scalar_(parts as f64)?;
        }
        Ok(Self { gradient, statistics: of_norms, losses })
    }
}
