//! The input of a training run: its streams of samples, and the files of a stream that is shuffled in blocks.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use calmix_core::micro_batching::{MicroBatch, MicroBatching};
use calmix_core::rng::Seed;

use super::corrupt::{OnCorrupt, Tally};
use super::sample_ids::SampleIds;
use crate::dataset::Dataset;
use crate::error::DataError;

/// The input of a training run. Together with the dataset and the transform, it determines every byte of every batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    /// The seed of the run.
    pub seed: Seed,
    /// The steps to deliver: from zero, or from the step of a resumed run.
    pub steps: Range<u64>,
    /// The division of a step into micro-batches.
    pub micro_batching: MicroBatching,
    /// The micro-batches that this process runs.
    pub micro_batches: Vec<MicroBatch>,
    pub labelled: SampleStream,
    /// The unlabelled stream; empty for supervised training.
    pub unlabelled: SampleStream,
    /// The files of the unlabelled stream if it is shuffled in blocks; `None` to shuffle all its samples.
    pub blocks: Option<FileBlocks>,
    /// The policy for corrupt samples.
    pub corrupt: OnCorrupt,
    /// The initial tally: zero, or the last one of a resumed run.
    pub tally: Tally,
}

/// The samples of a stream, and its batch size per group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampleStream {
    /// The ids of the samples.
    pub ids: SampleIds,
    /// Rows per group and step.
    pub batch: u32,
}

impl Training {
    /// Makes a run without rows on one process; set `labelled` and `unlabelled` next.
    pub fn new(seed: Seed, steps: Range<u64>) -> Self {
        let micro_batching = MicroBatching::default();
        Self {
            seed,
            steps,
            micro_batching,
            micro_batches: micro_batching.all().collect(),
            labelled: SampleStream::default(),
            unlabelled: SampleStream::default(),
            blocks: None,
            corrupt: OnCorrupt::default(),
            tally: Tally::default(),
        }
    }
}

/// The number of samples per file, and the number of files that are shuffled together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBlocks {
    /// The number of samples of each file, in the order of the stream.
    pub lengths: Arc<[u64]>,
    /// The number of files per block.
    pub files: NonZeroU64,
}

impl FileBlocks {
    /// Finds the files of a stream with ascending ids, by searching for the end of each.
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
            // First increasing steps, then decreasing ones, because files are short compared with the stream.
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
