//! What happened since the last step event: a checkpoint keeps it, so that a resumed run writes the same event.

use serde::{Deserialize, Serialize};

use super::pseudo_sums::PseudoSums;
use super::step_stats::StepStats;

/// Sums over the steps since the last step event.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogWindow {
    /// Of the pseudo-labels.
    pub(super) pseudo: PseudoSums,
    /// Steps that were left out since the scaled gradient of f16 overflowed.
    pub(super) overflows: u64,
}

impl LogWindow {
    /// Adds a step, with whether its weights `moved`.
    pub(super) fn add(&mut self, stats: &StepStats, moved: bool) {
        self.pseudo.add_numbers(&stats.pseudo.numbers());
        self.overflows += u64::from(!moved);
    }
}
