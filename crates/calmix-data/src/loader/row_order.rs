//! The order in which a micro-batch takes its rows: over single samples, or over blocks of files.

use calmix_core::order::{Block, BlockCursor, BlockMembership, BlockOrder, Cursor, Membership, Order, Visit};

/// The samples of the micro-batches of a stream.
#[derive(Debug)]
pub(super) enum Members {
    /// Every micro-batch has all samples: the labelled stream, whose micro-batches share one order.
    Shared,
    Samples(Membership),
    Blocks(BlockMembership),
}

impl Members {
    /// Returns the index in the stream of the sample in a slot of a micro-batch.
    pub(super) fn sample(&self, micro_batch: u64, slot: u64) -> Option<u64> {
        match self {
            Self::Shared => Some(slot),
            Self::Samples(membership) => membership.sample(micro_batch, slot),
            Self::Blocks(membership) => membership.sample(micro_batch, slot),
        }
    }
}

/// The order of a micro-batch.
#[derive(Debug, Clone)]
pub(super) enum RowOrder {
    Samples(Order),
    Blocks(BlockOrder),
}

impl RowOrder {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Samples(order) => order.len.get(),
            Self::Blocks(order) => order.len.get(),
        }
    }

    pub(super) fn at(&self, position: u64) -> Visit {
        match self {
            Self::Samples(order) => order.at(position),
            Self::Blocks(order) => order.at(position),
        }
    }

    pub(super) fn cursor(&self) -> RowCursor {
        match self {
            Self::Samples(order) => RowCursor::Samples(order.cursor()),
            Self::Blocks(order) => RowCursor::Blocks(order.cursor()),
        }
    }
}

/// The state that a worker keeps for a micro-batch: its current epoch or block.
#[derive(Debug, Clone)]
pub(super) enum RowCursor {
    Samples(Cursor),
    Blocks(BlockCursor),
}

impl RowCursor {
    pub(super) fn at(&mut self, position: u64) -> Visit {
        match self {
            Self::Samples(cursor) => cursor.at(position),
            Self::Blocks(cursor) => cursor.at(position),
        }
    }

    /// Returns the block at a position; `None` if the order has no blocks.
    pub(super) fn block(&mut self, position: u64) -> Option<Block> {
        match self {
            Self::Samples(_) => None,
            Self::Blocks(cursor) => Some(cursor.block(position)),
        }
    }
}
