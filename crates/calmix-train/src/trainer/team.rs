//! Who runs which parts of a step.
//!
//! A step has G groups of K parts each, whatever runs them. W processes, where W divides G·K, run G·K/W consecutive
//! parts each. The processes that run parts of the same group are its circle: they gather what the network said about
//! it and make the same plan.

use std::num::NonZeroU32;
use std::ops::Range;

use calmix_data::order::{Shard, Sharding};
use calmix_dist::{DistError, Processes};
use calmix_engine::batch::{Cut, Part};

use super::error::TrainError;
use crate::recipe::Recipe;

/// The processes of a run, and what this one has to do.
pub(super) struct Team {
    pub(super) processes: Processes,
    sharding: Sharding,
    circles: Vec<Circle>,
    /// Rows of a group: labelled, unlabelled.
    batch: (u32, u32),
}

/// A group that this process takes part in.
pub(super) struct Circle {
    pub(super) group: usize,
    /// Who else takes part in it.
    pub(super) processes: Processes,
    /// The parts of the group that are run here.
    pub(super) parts: Vec<Rows>,
}

/// Rows of a group's batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) labelled: Range<usize>,
    pub(super) unlabelled: Range<usize>,
}

impl Team {
    /// Shares out the parts of a recipe's steps.
    pub(super) fn new(processes: Processes, recipe: &Recipe) -> Result<Self, TrainError> {
        let train = &recipe.train;
        let some = |number: u32| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let sharding = Sharding { groups: some(train.groups), shards: some(train.shards) };
        let parts = sharding.all().count();
        if !parts.is_multiple_of(processes.size()) {
            return Err(TrainError::Uneven {
                processes: processes.size(),
                groups: train.groups,
                shards: train.shards,
            });
        }
        let batch = (train.batch, recipe.unlabelled());
        let circles = circles(&processes, sharding, batch)?;
        Ok(Self { processes, sharding, circles, batch })
    }

    /// Whether this is the process that writes and tells.
    pub(super) fn leads(&self) -> bool {
        self.processes.rank() == 0
    }

    pub(super) fn sharding(&self) -> Sharding {
        self.sharding
    }

    /// Groups of a step.
    pub(super) fn groups(&self) -> usize {
        self.sharding.groups.get() as usize
    }

    /// Parts of a step.
    pub(super) fn all(&self) -> usize {
        self.sharding.all().count()
    }

    /// The parts that are run here, counted over the whole step.
    pub(super) fn parts(&self) -> Range<usize> {
        let each = self.all() / self.processes.size();
        self.processes.rank() * each..(self.processes.rank() + 1) * each
    }

    /// Who runs a part.
    pub(super) fn owner(&self, part: usize) -> usize {
        part / (self.all() / self.processes.size()).max(1)
    }

    /// The shards that are run here.
    pub(super) fn shards(&self) -> Vec<Shard> {
        let Range { start, end } = self.parts();
        self.sharding.all().skip(start).take(end - start).collect()
    }

    /// The groups that this process takes part in, in order.
    pub(super) fn circles(&self) -> &[Circle] {
        &self.circles
    }

    /// How the rows of this process are cut.
    pub(super) fn cut(&self) -> Cut {
        let mut at = (0, 0);
        let rows = self.circles.iter().flat_map(|circle| &circle.parts);
        let parts = rows.map(|rows| {
            let (x, u) = (at.0 + rows.labelled.len(), at.1 + rows.unlabelled.len());
            let part = Part { labelled: at.0..x, unlabelled: at.1..u };
            at = (x, u);
            part
        });
        Cut {
            parts: parts.collect(),
            all: self.all(),
            groups: self.groups(),
            labelled: self.batch.0 as usize,
            unlabelled: self.batch.1 as usize,
        }
    }
}

impl Circle {
    /// The rows of the group that are here; parts of a process follow each other.
    pub(super) fn rows(&self) -> Rows {
        let span = |of: fn(&Rows) -> &Range<usize>| {
            let start = self.parts.first().map_or(0, |rows| of(rows).start);
            start..self.parts.last().map_or(0, |rows| of(rows).end)
        };
        Rows { labelled: span(|rows| &rows.labelled), unlabelled: span(|rows| &rows.unlabelled) }
    }

    /// Whether this process speaks for the group.
    pub(super) fn leads(&self) -> bool {
        self.processes.rank() == 0
    }
}

/// Every process has to come here, also for groups of others.
fn circles(processes: &Processes, sharding: Sharding, batch: (u32, u32)) -> Result<Vec<Circle>, DistError> {
    let (shards, rank) = (sharding.shards.get() as usize, processes.rank());
    let each = sharding.all().count() / processes.size();
    let mut circles = Vec::new();
    for group in 0..sharding.groups.get() {
        let first = group as usize * shards;
        let ranks = first / each..(first + shards - 1) / each + 1;
        let Some(circle) = processes.part(&format!("group-{group}"), ranks)? else { continue };
        let here = (0..sharding.shards.get()).filter(|&index| (first + index as usize) / each == rank);
        let parts = here.map(|index| rows_of(sharding, batch, Shard { group, index })).collect();
        circles.push(Circle { group: group as usize, processes: circle, parts });
    }
    Ok(circles)
}

/// The rows of a part within the batch of its group.
fn rows_of(sharding: Sharding, (labelled, unlabelled): (u32, u32), shard: Shard) -> Rows {
    let within = |batch: u32| {
        let Range { start, end } = sharding.rows(batch, shard);
        let first = u64::from(shard.group) * u64::from(batch);
        // Rows of a batch of at most 2^32 rows.
        (start - first) as usize..(end - first) as usize
    };
    Rows { labelled: within(labelled), unlabelled: within(unlabelled) }
}
