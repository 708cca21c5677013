//! The sample ids of a stream.

use std::ops::Range;
use std::sync::Arc;

use crate::split::UnlabelledSet;

/// The ids of a stream, in a fixed order: a whole subset, or those that a split chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SampleIds {
    /// Consecutive ids; takes no memory.
    Range(Range<u64>),
    /// Any ids: those that keep their labels.
    List(Arc<[u64]>),
    /// Ranges with holes: the unlabelled set of a split.
    Unlabelled(UnlabelledSet),
}

impl Default for SampleIds {
    fn default() -> Self {
        Self::Range(0..0)
    }
}

impl From<Range<u64>> for SampleIds {
    fn from(ids: Range<u64>) -> Self {
        Self::Range(ids)
    }
}

impl From<&[u64]> for SampleIds {
    fn from(ids: &[u64]) -> Self {
        Self::List(ids.into())
    }
}

impl From<UnlabelledSet> for SampleIds {
    fn from(ids: UnlabelledSet) -> Self {
        Self::Unlabelled(ids)
    }
}

impl SampleIds {
    /// How many there are.
    pub fn len(&self) -> u64 {
        match self {
            Self::Range(ids) => ids.end.saturating_sub(ids.start),
            Self::List(ids) => ids.len() as u64,
            Self::Unlabelled(ids) => ids.len(),
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
            Self::Unlabelled(ids) => ids.id(index),
        }
    }
}
