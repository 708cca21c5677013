//! Which process runs which micro-batches of a step, and which share of its machine it has.
//!
//! A step has G groups of K micro-batches each, whichever processes run them. W processes, at most G·K, run consecutive
//! micro-batches, as many each if their number allows it, or else one more on some. The processes that run micro-batches of the
//! same group gather the outputs of the network for it and make the same plan.

use std::ops::Range;

use calmix_core::micro_batching::{MicroBatch, MicroBatchRows, MicroBatching, Partition, RowsPerMicroBatch};
use calmix_core::mixup::Row;
use calmix_dist::tree::held;
use calmix_dist::{DistError, Operation, ProcessGroup};

use calmix_recipe::Recipe;
use calmix_run::events::Collectives;

use crate::trainer::error::TrainError;

/// The processes of a run, and what this one runs.
pub(crate) struct ParallelLayout {
    pub(crate) processes: ProcessGroup,
    micro_batching: MicroBatching,
    memberships: Vec<GroupMembership>,
    rows: RowsPerMicroBatch,
}

/// A group that this process runs micro-batches of.
pub(crate) struct GroupMembership {
    pub(crate) group: usize,
    /// The processes that run micro-batches of the group.
    pub(crate) processes: ProcessGroup,
    /// The micro-batches of the group that each of them runs, in order of rank.
    members: Vec<Range<usize>>,
    rows: RowsPerMicroBatch,
    /// Where the micro-batches of the group that this process runs stand among all that it runs.
    pub(crate) local: Range<usize>,
}

impl ParallelLayout {
    /// Assigns the micro-batches of a recipe's steps to the processes.
    pub(crate) fn new(processes: ProcessGroup, recipe: &Recipe) -> Result<Self, TrainError> {
        let train = &recipe.train;
        let micro_batching = MicroBatching::new(train.groups, train.micro_batches);
        if micro_batching.all().count() < processes.size() {
            return Err(TrainError::TooManyProcesses {
                processes: processes.size(),
                groups: train.groups,
                micro_batches: train.micro_batches,
            });
        }
        let rows = RowsPerMicroBatch {
            labelled: (train.batch / micro_batching.micro_batches) as usize,
            unlabelled: (recipe.unlabelled() / micro_batching.micro_batches) as usize,
        };
        let memberships = memberships(&processes, micro_batching, rows)?;
        Ok(Self { processes, micro_batching, memberships, rows })
    }

    /// Whether this is rank 0, which writes the run's files and passes its events to the sinks.
    pub(crate) fn leads(&self) -> bool {
        self.processes.rank() == 0
    }

    pub(crate) fn micro_batching(&self) -> MicroBatching {
        self.micro_batching
    }

    /// Groups of a step.
    pub(crate) fn groups(&self) -> usize {
        self.micro_batching.groups.get() as usize
    }

    /// Micro-batches of a step.
    pub(crate) fn all(&self) -> usize {
        self.micro_batching.all().count()
    }

    /// The micro-batches that this process runs, counted over the whole step.
    pub(crate) fn local(&self) -> Range<usize> {
        held(self.all(), self.processes.rank(), self.processes.size())
    }

    /// The micro-batches that each process runs, in order of rank, counted over the whole step.
    pub(crate) fn micro_batches_by_rank(&self) -> Vec<Range<usize>> {
        let all = self.all();
        let size = self.processes.size();
        (0..size).map(|rank| held(all, rank, size)).collect()
    }

    /// The micro-batches that this process runs, by group and index.
    pub(crate) fn micro_batches(&self) -> Vec<MicroBatch> {
        let Range { start, end } = self.local();
        self.micro_batching.all().skip(start).take(end - start).collect()
    }

    /// The groups that this process runs micro-batches of, in order.
    pub(crate) fn memberships(&self) -> &[GroupMembership] {
        &self.memberships
    }

    /// How the rows of this process's batches are split.
    pub(crate) fn partition(&self) -> Partition {
        Partition::equal(self.micro_batching, self.rows, self.local().len())
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
    /// The micro-batches of the group that its processes run, in order of rank.
    pub(crate) fn members(&self) -> &[Range<usize>] {
        &self.members
    }

    /// The micro-batches of the group that this process runs.
    pub(crate) fn micro_batches(&self) -> Range<usize> {
        self.members.get(self.processes.rank()).cloned().unwrap_or_default()
    }

    /// The rows of a micro-batch, within the batch of the group if `micro_batch` counts those of the group, or else within the
    /// batch of this process.
    pub(crate) fn rows(&self, micro_batch: usize) -> MicroBatchRows {
        self.rows.of(micro_batch..micro_batch + 1)
    }

    /// The rows of this process that belong to the group, within its batch.
    pub(crate) fn local_rows(&self) -> MicroBatchRows {
        self.rows.of(self.local.clone())
    }

    /// The position of a row of the group's batch in this process's batch; `None` if another process has it.
    pub(crate) fn local_row(&self, row: Row) -> Option<Row> {
        let micro_batches = self.micro_batches();
        if !micro_batches.contains(&self.micro_batch_of(row)) {
            return None;
        }
        let local = self.local_rows();
        let first = self.rows(micro_batches.start);
        Some(match row {
            Row::Labelled(i) => Row::Labelled(local.labelled.start + i - first.labelled.start),
            Row::Unlabelled(j) => Row::Unlabelled(local.unlabelled.start + j - first.unlabelled.start),
        })
    }

    /// The micro-batch of a row of the group's batch.
    pub(crate) fn micro_batch_of(&self, row: Row) -> usize {
        self.rows.micro_batch_of(row)
    }

    /// The rank, among the group's processes, of the one that runs a micro-batch.
    pub(crate) fn owner(&self, micro_batch: usize) -> usize {
        self.members.iter().position(|micro_batches| micro_batches.contains(&micro_batch)).unwrap_or(0)
    }
}

/// Every process has to call this, also for groups that it does not belong to.
fn memberships(
    processes: &ProcessGroup,
    micro_batching: MicroBatching,
    rows: RowsPerMicroBatch,
) -> Result<Vec<GroupMembership>, DistError> {
    let all = micro_batching.all().count();
    let of_rank = |rank: usize| held(all, rank, processes.size());
    let local = of_rank(processes.rank());
    let mut memberships = Vec::new();
    for group in 0..micro_batching.groups.get() as usize {
        let Range { start: first, end } = micro_batching.of_group(group);
        let runs_some = |&rank: &usize| of_rank(rank).start < end && first < of_rank(rank).end;
        let members: Vec<usize> = (0..processes.size()).filter(runs_some).collect();
        // Neighbours, since each process runs consecutive micro-batches.
        let ranks = members.first().copied().unwrap_or(0)..members.last().map_or(0, |last| last + 1);
        let Some(subgroup) = processes.subgroup(&format!("group-{group}"), ranks.clone())? else { continue };
        let of_group = |rank| {
            let micro_batches = of_rank(rank);
            micro_batches.start.max(first) - first..micro_batches.end.min(end) - first
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
