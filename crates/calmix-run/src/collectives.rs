//! Counts of the collective operations in the training steps of a process.

use serde::{Deserialize, Serialize};

/// The number of collective operations in training steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collectives {
    /// All-gathers over all processes.
    pub world_gathers: u64,
    /// Sums over all processes, each a scatter and a gather.
    pub sums: u64,
    /// All-gathers in the groups of this process.
    pub group_gathers: u64,
    /// Calls of all-to-all in the groups of this process.
    pub exchanges: u64,
}

impl Collectives {
    /// The number since an earlier count.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            world_gathers: self.world_gathers.saturating_sub(before.world_gathers),
            sums: self.sums.saturating_sub(before.sums),
            group_gathers: self.group_gathers.saturating_sub(before.group_gathers),
            exchanges: self.exchanges.saturating_sub(before.exchanges),
        }
    }
}
