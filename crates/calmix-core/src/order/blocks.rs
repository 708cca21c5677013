//! The order of samples in large files: block by block of files, so that a file is read during one part of each epoch only.
//!
//! The samples of a file are neighbours in the stream. The files are laid end to end in a random order, and every micro-batch of
//! a step has an equal piece of that row, so that it needs few files. In each epoch, a micro-batch puts its files into a new
//! order and divides them into blocks of a few files; the samples of a block are shuffled together.
//!
//! # Format
//!
//! A resumed run relies on it, and a test pins it.
//!
//! - The files in the order of a permutation drawn from `seed.stream(Domain::Membership, 1, files)`, for a single micro-batch
//!   in the order of the stream, are a row of N samples. Micro-batch s of S has a piece of it, ⌈(N − s) / S⌉ samples long, in
//!   its slots 0, 1, 2, …; the pieces follow each other.
//! - A piece consists of segments, the parts of it that lie in one file. In epoch e, the m segments of a micro-batch are put
//!   into the order of a permutation drawn from `seed.stream(Domain::Block, e, 0)`, where the seed is `seed.child(s)`, for a
//!   single micro-batch the seed itself. They form B = ⌈m / block⌉ blocks: block b has the segments from ⌊b·m / B⌋ up to
//!   ⌊(b + 1)·m / B⌋.
//! - The samples of block b are visited in the order of a permutation drawn from `seed.stream(Domain::Block, e, b + 1)`.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use crate::rng::{Domain, Seed};

use super::Visit;
use super::permutation::Permutation;

/// The assignment of the samples of the unlabelled stream to micro-batches, file by file.
///
/// Takes 16 bytes per file.
///
/// ```
/// use std::num::NonZeroU64;
/// use calmix_core::rng::Seed;
/// use calmix_core::order::BlockMembership;
///
/// let count = |n| NonZeroU64::new(n).unwrap();
/// let membership = BlockMembership::new(Seed(7), &[1_000; 100], count(4), count(8)).unwrap();
/// let order = membership.order(2).unwrap();
/// assert_eq!(order.len.get(), 25_000);
/// let slot = order.at(123_456).index;
/// assert!(membership.sample(2, slot).unwrap() < 100_000);
/// ```
#[derive(Debug, Clone)]
pub struct BlockMembership {
    seed: Seed,
    micro_batches: NonZeroU64,
    /// The number of files per block.
    block: NonZeroU64,
    samples: u64,
    /// The position at which each file begins in the row, ascending.
    begins: Arc<[u64]>,
    /// The first sample of each file in the stream, in the order of the row.
    firsts: Arc<[u64]>,
}

impl BlockMembership {
    /// Assigns the samples of a stream whose files have these `lengths`, in the order of the stream. A block has `block` files.
    /// `None` if there are fewer samples than micro-batches, or more than 2⁶⁴.
    pub fn new(seed: Seed, lengths: &[u64], micro_batches: NonZeroU64, block: NonZeroU64) -> Option<Self> {
        let mut files: Vec<Range<u64>> = Vec::with_capacity(lengths.len());
        let mut samples: u64 = 0;
        for &length in lengths.iter().filter(|&&length| length > 0) {
            let end = samples.checked_add(length)?;
            files.push(samples..end);
            samples = end;
        }
        if samples < micro_batches.get() {
            return None;
        }
        let count = NonZeroU64::new(files.len() as u64)?;
        // As for single samples: files are often sorted by class.
        let draw = || Permutation::draw(count, &mut seed.stream(Domain::Membership, 1, count.get()));
        let permutation = (micro_batches > NonZeroU64::MIN).then(draw);
        let mut begins = Vec::with_capacity(files.len());
        let mut firsts = Vec::with_capacity(files.len());
        let mut at = 0;
        for place in 0..count.get() {
            let file = permutation.as_ref().map_or(place, |permutation| permutation.at(place));
            let Range { start, end } = files[file as usize];
            begins.push(at);
            firsts.push(start);
            at += end - start;
        }
        Some(Self { seed, micro_batches, block, samples, begins: begins.into(), firsts: firsts.into() })
    }

    /// Returns the number of samples of a micro-batch: at least one, and at most one more than any other micro-batch. Zero for
    /// a micro-batch that does not exist.
    pub fn len(&self, micro_batch: u64) -> u64 {
        if micro_batch >= self.micro_batches.get() {
            return 0;
        }
        (self.samples - micro_batch).div_ceil(self.micro_batches.get())
    }

    /// Returns the sample of the stream in a slot of a micro-batch; `None` if there is no such slot.
    pub fn sample(&self, micro_batch: u64, slot: u64) -> Option<u64> {
        if slot >= self.len(micro_batch) {
            return None;
        }
        let place = self.begin(micro_batch) + slot;
        let file = self.begins.partition_point(|&begin| begin <= place).checked_sub(1)?;
        Some(self.firsts.get(file)? + (place - self.begins.get(file)?))
    }

    /// Returns the order in which a micro-batch visits its slots; `None` if there is no such micro-batch.
    pub fn order(&self, micro_batch: u64) -> Option<BlockOrder> {
        let len = NonZeroU64::new(self.len(micro_batch))?;
        let begin = self.begin(micro_batch);
        let inner = self.begins.iter().filter(|&&file| file > begin && file < begin + len.get());
        let segments = std::iter::once(0).chain(inner.map(|file| file - begin)).chain([len.get()]).collect();
        let seed =
            if self.micro_batches == NonZeroU64::MIN { self.seed } else { self.seed.child(micro_batch) };
        Some(BlockOrder { seed, len, block: self.block, segments })
    }

    /// Returns the position at which the piece of a micro-batch begins in the row.
    fn begin(&self, micro_batch: u64) -> u64 {
        let micro_batches = self.micro_batches.get();
        // In this form, `samples · micro_batch` cannot overflow.
        self.samples / micro_batches * micro_batch + micro_batch.min(self.samples % micro_batches)
    }
}

/// The order in which a micro-batch visits its samples, block by block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockOrder {
    seed: Seed,
    /// The number of samples per epoch.
    pub len: NonZeroU64,
    block: NonZeroU64,
    /// The slots at which the segments begin, and the number of slots.
    segments: Arc<[u64]>,
}

/// Segments that are shuffled together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The positions, counted from the beginning of the run, that are in the block.
    pub positions: Range<u64>,
    /// The first slot of each segment, one per file.
    pub first_slots: Vec<u64>,
}

impl BlockOrder {
    /// Returns the visit at `position`, counted from the beginning of the run.
    pub fn at(&self, position: u64) -> Visit {
        self.cursor().at(position)
    }

    /// Returns a cursor for many positions, which is fastest if they lie in the same block.
    pub fn cursor(&self) -> BlockCursor {
        BlockCursor { order: self.clone(), epoch: None, shuffled: None }
    }

    fn epoch(&self, epoch: u64) -> BlockEpoch {
        let count = self.segments.len() as u64 - 1;
        let blocks = count.div_ceil(self.block.get());
        let draw = |count| Permutation::draw(count, &mut self.seed.stream(Domain::Block, epoch, 0));
        let permutation = NonZeroU64::new(count).map(draw);
        let mut found = BlockEpoch { epoch, segments: Vec::new(), ends: Vec::new() };
        let mut place = 0;
        for block in 0..blocks {
            for at in block * count / blocks..(block + 1) * count / blocks {
                let segment = permutation.as_ref().map_or(at, |all| all.at(at)) as usize;
                let slots = self.segments[segment]..self.segments[segment + 1];
                found.segments.push(EpochSegment { block, place, first: slots.start });
                place += slots.end - slots.start;
            }
            found.ends.push(place);
        }
        found
    }
}

/// A [`BlockOrder`] that caches the last epoch and the last block; its results are the same.
#[derive(Debug, Clone)]
pub struct BlockCursor {
    order: BlockOrder,
    epoch: Option<BlockEpoch>,
    /// The places of the last block in the epoch, and the order of its samples.
    shuffled: Option<(Range<u64>, Permutation)>,
}

/// The blocks of an epoch.
#[derive(Debug, Clone)]
struct BlockEpoch {
    epoch: u64,
    segments: Vec<EpochSegment>,
    /// The place at which each block ends.
    ends: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct EpochSegment {
    block: u64,
    /// The place of the epoch at which it begins, before its block is shuffled.
    place: u64,
    /// The first slot.
    first: u64,
}

impl BlockCursor {
    /// Returns the visit at `position`, counted from the beginning of the run.
    pub fn at(&mut self, position: u64) -> Visit {
        let epoch = position / self.order.len;
        let place = position % self.order.len;
        self.load_epoch(epoch);
        let Self { order, epoch: Some(blocks), shuffled } = self else {
            return Visit { epoch, index: place };
        };
        let is_cached = shuffled.as_ref().is_some_and(|(places, _)| places.contains(&place));
        if !is_cached {
            *shuffled = Some(blocks.shuffled(order.seed, place));
        }
        let inside =
            shuffled.as_ref().map_or(place, |(places, all)| places.start + all.at(place - places.start));
        Visit { epoch, index: blocks.slot(inside) }
    }

    /// Returns the block at `position`. The next block begins where it ends.
    pub fn block(&mut self, position: u64) -> Block {
        let epoch = position / self.order.len;
        self.load_epoch(epoch);
        let begin = position - position % self.order.len;
        let Some(blocks) = &self.epoch else {
            return Block { positions: position..position + 1, first_slots: Vec::new() };
        };
        let (number, places) = blocks.block(position - begin);
        let inside = blocks.segments.iter().filter(|segment| segment.block == number);
        Block {
            positions: begin.saturating_add(places.start)..begin.saturating_add(places.end),
            first_slots: inside.map(|segment| segment.first).collect(),
        }
    }

    fn load_epoch(&mut self, epoch: u64) {
        if self.epoch.as_ref().is_none_or(|cached| cached.epoch != epoch) {
            self.epoch = Some(self.order.epoch(epoch));
            self.shuffled = None;
        }
    }
}

impl BlockEpoch {
    /// Returns the number of the block at a place of the epoch, and the range of its places.
    fn block(&self, place: u64) -> (u64, Range<u64>) {
        let number = self.ends.partition_point(|&end| end <= place);
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(number).copied();
        (number as u64, start.unwrap_or(0)..end.unwrap_or(place + 1))
    }

    fn shuffled(&self, seed: Seed, place: u64) -> (Range<u64>, Permutation) {
        let (number, places) = self.block(place);
        let len = NonZeroU64::new(places.end - places.start).unwrap_or(NonZeroU64::MIN);
        let permutation = Permutation::draw(len, &mut seed.stream(Domain::Block, self.epoch, number + 1));
        (places, permutation)
    }

    /// Returns the slot at a place of the epoch, before blocks are shuffled.
    fn slot(&self, place: u64) -> u64 {
        let next = self.segments.partition_point(|segment| segment.place <= place);
        let segment = next.checked_sub(1).and_then(|index| self.segments.get(index));
        segment.map_or(place, |segment| segment.first + (place - segment.place))
    }
}
