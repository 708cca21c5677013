//! The sample ids of a stream.

use std::ops::Range;
use std::sync::Arc;

use crate::split::UnlabelledSet;

/// The ids of a stream in a fixed order: a whole subset, or a selection by a split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SampleIds {
    /// Consecutive ids, which take no memory.
    Range(Range<u64>),
    /// Any ids, such as those that keep their labels.
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
    pub fn len(&self) -> u64 {
        match self {
            Self::Range(ids) => ids.end.saturating_sub(ids.start),
            Self::List(ids) => ids.len() as u64,
            Self::Unlabelled(ids) => ids.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the existing ids at a range of indices. Only non-consecutive ids take memory.
    #[must_use]
    pub fn slice(&self, indices: Range<u64>) -> Self {
        match self {
            Self::Range(ids) => {
                let at = |index: u64| ids.start.saturating_add(index).min(ids.end);
                Self::Range(at(indices.start)..at(indices.end).max(at(indices.start)))
            }
            other => Self::List(indices.map_while(|index| other.id(index)).collect()),
        }
    }

    /// Returns the id at `index`; `None` beyond the end.
    pub fn id(&self, index: u64) -> Option<u64> {
        match self {
            Self::Range(ids) => (index < self.len()).then(|| ids.start + index),
            Self::List(ids) => ids.get(usize::try_from(index).ok()?).copied(),
            Self::Unlabelled(ids) => ids.id(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_of_consecutive_ids_takes_no_memory() {
        let ids = SampleIds::from(10..1_000_000_010);
        assert_eq!(ids.slice(5..999_999_999), SampleIds::Range(15..1_000_000_009));
        assert_eq!(ids.slice(999_999_998..u64::MAX), SampleIds::Range(1_000_000_008..1_000_000_010));
        assert!(ids.slice(u64::MAX - 1..u64::MAX).is_empty());
        let list = SampleIds::from(&[3, 1, 4, 1, 5][..]);
        assert_eq!(list.slice(1..3), SampleIds::from(&[1, 4][..]));
        assert_eq!(list.slice(3..9), SampleIds::from(&[1, 5][..]));
    }
}
