//! A cache of open parts: all parts of most sharded datasets, or the most recently used ones if there are more files than a
//! process may open.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use calmix_formats::read_at::ReadAt;
use calmix_io::system;

/// The minimum number of parts that stay open, even if the system allows fewer.
const MIN_OPEN: u64 = 64;
/// The maximum number of open parts: more would only use system memory.
const MAX_OPEN: u64 = 1 << 16;
/// Fewer samples per part than this do not justify many open files: a file with one image is read once per epoch.
const MIN_SAMPLES_PER_PART: u64 = 8;

/// Open parts by index.
#[derive(Debug)]
pub(super) struct OpenParts {
    /// Each part with the time of its last use, as a count of uses.
    parts: HashMap<u32, (u64, Arc<ReadAt>)>,
    /// The indices of the parts by time of last use.
    by_use: BTreeMap<u64, u32>,
    uses: u64,
    capacity: usize,
}

impl OpenParts {
    /// Makes an empty cache for `count` parts with `samples` samples in total.
    pub(super) fn new(count: u32, samples: u64) -> Self {
        let count = u64::from(count);
        let mut capacity = MIN_OPEN;
        if count > MIN_OPEN && samples / count >= MIN_SAMPLES_PER_PART {
            system::raise_open_files();
            // The other half is for all other files that the process opens.
            capacity =
                system::max_open_files().map_or(MAX_OPEN, |limit| (limit / 2).clamp(MIN_OPEN, MAX_OPEN));
        }
        Self::with_room(capacity as usize)
    }

    fn with_room(capacity: usize) -> Self {
        Self { parts: HashMap::new(), by_use: BTreeMap::new(), uses: 0, capacity }
    }

    /// Returns a part if it is open, and counts the use.
    pub(super) fn take(&mut self, index: u32) -> Option<Arc<ReadAt>> {
        let (used, part) = self.parts.get_mut(&index)?;
        self.by_use.remove(used);
        self.uses += 1;
        *used = self.uses;
        self.by_use.insert(self.uses, index);
        Some(Arc::clone(part))
    }

    /// Closes the parts whose files were removed from the cache of shards.
    pub(super) fn close_removed(&mut self) {
        let Self { parts, by_use, .. } = self;
        parts.retain(|_, (used, part)| {
            let is_kept = !part.is_removed();
            if !is_kept {
                by_use.remove(used);
            }
            is_kept
        });
    }

    /// Keeps a part open, and closes the least recently used one if there are too many.
    pub(super) fn keep(&mut self, index: u32, part: &Arc<ReadAt>) {
        self.uses += 1;
        if let Some((used, _)) = self.parts.insert(index, (self.uses, Arc::clone(part))) {
            self.by_use.remove(&used);
        }
        self.by_use.insert(self.uses, index);
        if self.parts.len() > self.capacity
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.parts.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_that_was_not_used_for_the_longest_time_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("part"), b"bytes").unwrap();
        let root = folder.path().canonicalize().unwrap();
        let part = || Arc::new(ReadAt::open(&root, "part").unwrap());
        let mut open = OpenParts::with_room(3);
        for index in [5, 6, 7] {
            open.keep(index, &part());
        }
        assert!(open.take(5).is_some());
        open.keep(7, &part());
        open.keep(8, &part());
        let left: Vec<bool> = [5, 6, 7, 8].into_iter().map(|index| open.take(index).is_some()).collect();
        assert_eq!(left, [true, false, true, true]);
        assert_eq!(open.by_use.len(), open.parts.len());
    }

    #[test]
    fn dataset_of_many_parts_keeps_as_many_open_as_the_system_allows() {
        assert_eq!(OpenParts::new(10, 1_000_000).capacity, 64);
        // A folder of single images.
        assert_eq!(OpenParts::new(1_000_000, 1_000_000).capacity, 64);
        let capacity = OpenParts::new(1_000, 1_000_000).capacity as u64;
        assert!(
            system::max_open_files().is_none_or(|limit| capacity == (limit / 2).clamp(MIN_OPEN, MAX_OPEN)),
            "{capacity}"
        );
    }
}
