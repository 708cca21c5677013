//! The files of a stream, for an order by block.

use std::num::NonZeroU64;
use std::sync::Arc;

use super::sample_ids::SampleIds;
use crate::dataset::Dataset;
use crate::error::DataError;

/// How many samples of a stream each file has, and how many files are shuffled together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBlocks {
    /// The number of samples of each file, in the order of the stream.
    pub lengths: Arc<[u64]>,
    /// Files of a block.
    pub files: NonZeroU64,
}

impl FileBlocks {
    /// Finds the files of a stream whose ids ascend, by a search for the end of each.
    ///
    /// # Errors
    /// If the table of the dataset cannot be read.
    pub fn find(dataset: &Dataset, ids: &SampleIds, files: NonZeroU64) -> Result<Self, DataError> {
        let part_at = |index: u64| -> Result<u32, DataError> {
            // Every index below the length has an id.
            Ok(dataset.record(ids.id(index).unwrap_or_default())?.part)
        };
        let mut lengths = Vec::new();
        let mut begin = 0;
        while begin < ids.len() {
            let part = part_at(begin)?;
            let mut inside = begin;
            let mut step = 1;
            // First ever larger steps, then halves of them: files are short beside the stream.
            while inside + step < ids.len() && part_at(inside + step)? == part {
                inside += step;
                step *= 2;
            }
            let mut outside = (inside + step).min(ids.len());
            while outside - inside > 1 {
                let middle = u64::midpoint(inside, outside);
                if part_at(middle)? == part {
                    inside = middle;
                } else {
                    outside = middle;
                }
            }
            lengths.push(outside - begin);
            begin = outside;
        }
        Ok(Self { lengths: lengths.into(), files })
    }
}
