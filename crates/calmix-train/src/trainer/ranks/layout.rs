//! Which process runs which shards of a step, and which share of its machine it has.
//!
//! A step has G groups of K shards each, whichever processes run them. W processes, at most G·K, run consecutive shards,
//! as many each if their number allows it, or else one more on some. The processes that run shards of the same group
//! gather the outputs of the network for it and make the same plan.

use std::ops::Range;

use calmix_core::mixup::Row;
use calmix_core::sharding::{Partition, RowsPerShard, Shard, ShardRows, Sharding};
use calmix_dist::tree::held;
use calmix_dist::{DistError, Operation, ProcessGroup};

use calmix_recipe::Recipe;
use calmix_run::collectives::Collectives;

use crate::trainer::error::TrainError;

/// The processes of a run, and what this one runs.
pub(crate) struct ParallelLayout {
    pub(crate) processes: ProcessGroup,
    sharding: Sharding,
    memberships: Vec<GroupMembership>,
    rows: RowsPerShard,
}

/// A group that this process runs shards of.
pub(crate) struct GroupMembership {
    pub(crate) group: usize,
    /// The processes that run shards of the group.
    pub(crate) processes: ProcessGroup,
    /// The shards of the group that each of them runs, in order of rank.
    members: Vec<Range<usize>>,
    rows: RowsPerShard,
    /// Where the shards of the group that this process runs stand among all that it runs.
    pub(crate) local: Range<usize>,
}

impl ParallelLayout {
    /// Assigns the shards of a recipe's steps to the processes.
    pub(crate) fn new(processes: ProcessGroup, recipe: &Recipe) -> Result<Self, TrainError> {
        let train = &recipe.train;
        let sharding = Sharding::new(train.groups, train.shards);
        if sharding.all().count() < processes.size() {
            return Err(TrainError::TooManyProcesses {
                processes: processes.size(),
                groups: train.groups,
                shards: train.shards,
            });
        }
        let rows = RowsPerShard {
            labelled: (train.batch / sharding.shards) as usize,
            unlabelled: (recipe.unlabelled() / sharding.shards) as usize,
        };
        let memberships = memberships(&processes, sharding, rows)?;
        Ok(Self { processes, sharding, memberships, rows })
    }

    /// Whether this is rank 0, which writes the run's files and passes its events to the sinks.
    pub(crate) fn leads(&self) -> bool {
        self.processes.rank() == 0
    }

    pub(crate) fn sharding(&self) -> Sharding {
        self.sharding
    }

    /// Groups of a step.
    pub(crate) fn groups(&self) -> usize {
        self.sharding.groups.get() as usize
    }

    /// Shards of a step.
    pub(crate) fn all(&self) -> usize {
        self.sharding.all().count()
    }

    /// The shards that this process runs, counted over the whole step.
    pub(crate) fn local(&self) -> Range<usize> {
        self.shards_of(self.processes.rank())
    }

    /// The shards that a process runs, counted over the whole step.
    pub(crate) fn shards_of(&self, rank: usize) -> Range<usize> {
        held(self.all(), rank, self.processes.size())
    }

    /// The number of shards that each process runs, in order of rank.
    pub(crate) fn shards_by_rank(&self) -> Vec<usize> {
        (0..self.processes.size()).map(|rank| self.shards_of(rank).len()).collect()
    }

    /// The shards that this process runs, by group and index.
    pub(crate) fn shards(&self) -> Vec<Shard> {
        let Range { start, end } = self.local();
        self.sharding.all().skip(start).take(end - start).collect()
    }

    /// The groups that this process runs shards of, in order.
    pub(crate) fn memberships(&self) -> &[GroupMembership] {
        &self.memberships
    }

    /// How the rows of this process's batches are split.
    pub(crate) fn partition(&self) -> Partition {
        Partition::equal(self.sharding, self.rows, self.local().len())
    }

    /// The number of collectives that this process has taken part in so far.
    pub(crate) fn collectives(&self) -> Collectives {
        let in_groups =
            |operation| self.memberships.iter().map(|membership| membership.processes.calls(operation)).sum();
        Collectives {
            world_gathers: self.processes.calls(Operation::AllGather),
            sums: self.processes.calls(Operation::TreeSum) / 2,
            group_gathers: in_groups(Operation::AllGather),
            exchanges: in_groups(Operation::AllToAll),
        }
    }
}

impl GroupMembership {
    /// The shards of the group that its processes run, in order of rank.
    pub(crate) fn members(&self) -> &[Range<usize>] {
        &self.members
    }

    /// The shards of the group that this process runs.
    pub(crate) fn shards(&self) -> Range<usize> {
        self.members.get(self.processes.rank()).cloned().unwrap_or_default()
    }

    /// The rows of a shard, within the batch of the group.
    pub(crate) fn rows(&self, shard: usize) -> ShardRows {
        self.rows.of(shard..shard + 1)
    }

    /// The rows of a shard that this process runs, within its batch. `local` counts the shards of this process, not those
    /// of the group.
    pub(crate) fn local_shard_rows(&self, local: usize) -> ShardRows {
        self.rows.of(local..local + 1)
    }

    /// The rows of this process that belong to the group, within its batch.
    pub(crate) fn local_rows(&self) -> ShardRows {
        self.rows.of(self.local.clone())
    }

    /// The position of a row of the group's batch in this process's batch; `None` if another process has it.
    pub(crate) fn local_row(&self, row: Row) -> Option<Row> {
        let shards = self.shards();
        if !shards.contains(&self.shard_of(row)) {
            return None;
        }
        let here = self.local_rows();
        let first = self.rows(shards.start);
        Some(match row {
            Row::Labelled(i) => Row::Labelled(here.labelled.start + i - first.labelled.start),
            Row::Unlabelled(j) => Row::Unlabelled(here.unlabelled.start + j - first.unlabelled.start),
        })
    }

    /// The shard of a row of the group's batch.
    pub(crate) fn shard_of(&self, row: Row) -> usize {
        self.rows.shard_of(row)
    }

    /// The rank, among the group's processes, of the one that runs a shard.
    pub(crate) fn owner(&self, shard: usize) -> usize {
        self.members.iter().position(|shards| shards.contains(&shard)).unwrap_or(0)
    }
}

/// Every process has to call this, also for groups that it does not belong to.
fn memberships(
    processes: &ProcessGroup,
    sharding: Sharding,
    rows: RowsPerShard,
) -> Result<Vec<GroupMembership>, DistError> {
    let all = sharding.all().count();
    let of_rank = |rank: usize| held(all, rank, processes.size());
    let local = of_rank(processes.rank());
    let mut memberships = Vec::new();
    for group in 0..sharding.groups.get() as usize {
        let Range { start: first, end } = sharding.of_group(group);
        let runs_some = |&rank: &usize| of_rank(rank).start < end && first < of_rank(rank).end;
        let members: Vec<usize> = (0..processes.size()).filter(runs_some).collect();
        // Neighbours, since each process runs consecutive shards.
        let ranks = members.first().copied().unwrap_or(0)..members.last().map_or(0, |last| last + 1);
        let Some(subgroup) = processes.subgroup(&format!("group-{group}"), ranks.clone())? else { continue };
        let of_group = |rank| {
            let shards = of_rank(rank);
            shards.start.max(first) - first..shards.end.min(end) - first
        };
        memberships.push(GroupMembership {
            group,
            processes: subgroup,
            members: ranks.map(of_group).collect(),
            rows,
            local: local.start.max(first) - local.start..local.end.min(end) - local.start,
        });
    }
    Ok(memberships)
}

/// This process among those of its machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalProcesses {
    /// Its local rank, which chooses its GPU.
    pub(crate) rank: usize,
    /// The number of processes on the machine.
    pub(crate) processes: usize,
}

impl Default for LocalProcesses {
    /// A process that is alone on its machine.
    fn default() -> Self {
        Self { rank: 0, processes: 1 }
    }
}
