//! The unlabelled set: ranges of ids with a few exceptions, which are never expanded, or the ids of a list.

use std::ops::Range;
use std::sync::Arc;

/// The ids to train on without a label, with O(log n) lookup between position and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlabelledSet(Ids);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Ids {
    Ranges(RangesWithHoles),
    /// The ids in ascending order.
    Listed(Arc<[u64]>),
}

/// Ranges of ids without some single ids; only the single ids take memory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RangesWithHoles {
    // Ascending, disjoint and not empty; each with its start position in the concatenation.
    ranges: Vec<(u64, Range<u64>)>,
    // The ascending positions of the excluded ids.
    holes: Vec<u64>,
    places: u64,
}

impl UnlabelledSet {
    /// Makes the set of ids in `ranges` that are not in `excluded`. Both may repeat ids, in any order.
    pub fn new(
        ranges: impl IntoIterator<Item = Range<u64>>,
        excluded: impl IntoIterator<Item = u64>,
    ) -> Self {
        Self(Ids::Ranges(RangesWithHoles::new(ranges, excluded)))
    }

    /// Makes the set of these ascending ids.
    pub(super) fn of_ids(ids: Arc<[u64]>) -> Self {
        Self(Ids::Listed(ids))
    }

    pub fn len(&self) -> u64 {
        match &self.0 {
            Ids::Ranges(set) => set.len(),
            Ids::Listed(ids) => ids.len() as u64,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the id at a position, in ascending order; `None` beyond the end.
    pub fn id(&self, position: u64) -> Option<u64> {
        match &self.0 {
            Ids::Ranges(set) => set.id(position),
            Ids::Listed(ids) => ids.get(usize::try_from(position).ok()?).copied(),
        }
    }

    /// Returns the position of an id; `None` if it is not in the set.
    pub fn position(&self, id: u64) -> Option<u64> {
        match &self.0 {
            Ids::Ranges(set) => set.position(id),
            Ids::Listed(ids) => ids.binary_search(&id).ok().map(|position| position as u64),
        }
    }
}

impl RangesWithHoles {
    fn new(ranges: impl IntoIterator<Item = Range<u64>>, excluded: impl IntoIterator<Item = u64>) -> Self {
        let mut sorted: Vec<Range<u64>> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        sorted.sort_unstable_by_key(|range| range.start);
        let mut set = Self { ranges: Vec::with_capacity(sorted.len()), holes: Vec::new(), places: 0 };
        let mut end = 0;
        for range in sorted {
            let range = range.start.max(end)..range.end;
            if !range.is_empty() {
                end = range.end;
                let length = range.end - range.start;
                set.ranges.push((set.places, range));
                set.places += length;
            }
        }
        let mut holes: Vec<u64> = excluded.into_iter().filter_map(|id| set.raw_position(id)).collect();
        holes.sort_unstable();
        holes.dedup();
        set.holes = holes;
        set
    }

    fn len(&self) -> u64 {
        self.places - self.holes.len() as u64
    }

    fn id(&self, position: u64) -> Option<u64> {
        if position >= self.len() {
            return None;
        }
        // Hole h shifts every position from holes[h] − h on by one, and these thresholds ascend.
        let (mut low, mut high) = (0, self.holes.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.holes.get(middle).is_some_and(|hole| hole - middle as u64 <= position) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let place = position + low as u64;
        let next = self.ranges.partition_point(|(begin, _)| *begin <= place);
        let (begin, range) = self.ranges.get(next.checked_sub(1)?)?;
        Some(range.start + (place - begin))
    }

    fn position(&self, id: u64) -> Option<u64> {
        let place = self.raw_position(id)?;
        self.holes.binary_search(&place).err().map(|before| place - before as u64)
    }

    fn raw_position(&self, id: u64) -> Option<u64> {
        let next = self.ranges.partition_point(|(_, range)| range.start <= id);
        let (begin, range) = self.ranges.get(next.checked_sub(1)?)?;
        range.contains(&id).then(|| begin + (id - range.start))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn billion_ids_need_memory_for_exclusions_only() {
        let set = RangesWithHoles::new(std::iter::once(5..1_000_000_005), [5, 6, 1_000_000_004, 500]);
        assert_eq!((set.len(), set.holes.len()), (999_999_996, 4));
        assert_eq!((set.id(0), set.id(492), set.id(493)), (Some(7), Some(499), Some(501)));
        assert_eq!((set.id(999_999_995), set.id(999_999_996)), (Some(1_000_000_003), None));
        let whole = UnlabelledSet::new(std::iter::once(0..u64::MAX), [0]);
        assert_eq!((whole.len(), whole.id(u64::MAX - 2)), (u64::MAX - 1, Some(u64::MAX - 1)));
        assert_eq!(whole.position(u64::MAX), None);
    }

    proptest! {
        #[test]
        fn positions_and_ids_are_the_same_as_in_a_list(
            ranges in vec((0_u64..60, 0_u64..20), 0..5),
            excluded in vec(0_u64..90, 0..30),
        ) {
            let ranges: Vec<Range<u64>> = ranges.into_iter().map(|(first, count)| first..first + count).collect();
            let set = UnlabelledSet::new(ranges.clone(), excluded.clone());
            let list: Vec<u64> = (0..100)
                .filter(|id| ranges.iter().any(|range| range.contains(id)) && !excluded.contains(id))
                .collect();
            prop_assert_eq!(set.len(), list.len() as u64);
            prop_assert_eq!(set.is_empty(), list.is_empty());
            let listed = UnlabelledSet::of_ids(list.as_slice().into());
            prop_assert_eq!(listed.len(), list.len() as u64);
            for position in 0..110 {
                prop_assert_eq!(set.id(position), list.get(position as usize).copied());
                prop_assert_eq!(listed.id(position), set.id(position));
            }
            for id in 0..110 {
                let place = list.iter().position(|other| *other == id).map(|place| place as u64);
                prop_assert_eq!(set.position(id), place);
                prop_assert_eq!(listed.position(id), place);
            }
        }
    }
}
