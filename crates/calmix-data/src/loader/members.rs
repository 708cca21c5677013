//! Which samples of a dataset a stream is made of.

use std::ops::Range;
use std::sync::Arc;

/// The ids of a stream, in a fixed order: a whole subset, or those that a split chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Members {
    /// Consecutive ids; takes no memory.
    Range(Range<u64>),
    /// Any ids.
    List(Arc<[u64]>),
}

impl Default for Members {
    fn default() -> Self {
        Self::Range(0..0)
    }
}

impl From<Range<u64>> for Members {
    fn from(ids: Range<u64>) -> Self {
        Self::Range(ids)
    }
}

impl From<Vec<u64>> for Members {
    fn from(ids: Vec<u64>) -> Self {
        Self::List(ids.into())
    }
}

impl Members {
    /// How many there are.
    pub fn len(&self) -> u64 {
        match self {
            Self::Range(ids) => ids.end.saturating_sub(ids.start),
            Self::List(ids) => ids.len() as u64,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id at `index`, if there are that many.
    pub fn id(&self, index: u64) -> Option<u64> {
        match self {
            Self::Range(ids) => (index < self.len()).then(|| ids.start + index),
            Self::List(ids) => ids.get(usize::try_from(index).ok()?).copied(),
        }
    }
}
