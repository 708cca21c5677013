//! What a training run reads: its streams of samples, and the files of a stream that is in an order by block.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use calmix_core::micro_batching::{MicroBatch, MicroBatching};
use calmix_core::rng::Seed;

use super::corrupt::{OnCorrupt, Tally};
use super::sample_ids::SampleIds;
use crate::dataset::Dataset;
use crate::error::DataError;

/// What a training run reads. With the dataset and the transform, it determines every byte of every batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    /// The seed of the run.
    pub seed: Seed,
    /// The steps to deliver: from zero, or from where a run is resumed.
    pub steps: Range<u64>,
    /// How a step is divided into micro-batches.
    pub micro_batching: MicroBatching,
    /// The micro-batches that this process runs.
    pub micro_batches: Vec<MicroBatch>,
    pub labelled: SampleStream,
    /// The unlabelled stream; nothing for plain supervision.
    pub unlabelled: SampleStream,
    /// The files of the unlabelled stream, if it is in an order by block; `None` for an order over all its samples.
    pub blocks: Option<FileBlocks>,
    /// What to do about corrupt samples.
    pub corrupt: OnCorrupt,
    /// Zero, or the last tally of a resumed run.
    pub tally: Tally,
}

/// The samples of a stream, and how many of them a group takes in a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampleStream {
    /// The ids of the samples.
    pub ids: SampleIds,
    /// Rows that a group takes in a step.
    pub batch: u32,
}

impl Training {
    /// A run without rows, on one process; set `labelled` and `unlabelled` next.
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
