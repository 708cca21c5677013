//! The assignment of a step's micro-batches to processes.
//!
//! A step has G groups of K micro-batches each, whichever processes run them. W processes, at most G·K, run consecutive
//! micro-batches; their numbers differ by at most one. The processes that run micro-batches of the same group gather the
//! network's outputs for it and make the same plan.

use std::ops::Range;

use calmix_core::micro_batching::{MicroBatch, MicroBatchRows, MicroBatching, Partition, RowsPerMicroBatch};
use calmix_core::mixup::Row;
use calmix_dist::tree::held;
use calmix_dist::{DistError, Operation, ProcessGroup};

use calmix_recipe::Recipe;
use calmix_run::events::Collectives;

use crate::trainer::error::TrainError;

/// The processes of a run, and the micro-batches of this one.
pub(crate) struct ParallelLayout {
    pub(crate) processes: ProcessGroup,
    micro_batching: MicroBatching,
    memberships: Vec<GroupMembership>,
    rows: RowsPerMicroBatch,
}

/// A group of which this process runs micro-batches.
pub(crate) struct GroupMembership {
    pub(crate) group: usize,
    /// The processes that run micro-batches of the group.
    pub(crate) processes: ProcessGroup,
    /// The group's micro-batches of each of these processes, in order of rank.
    members: Vec<Range<usize>>,
    rows: RowsPerMicroBatch,
    /// The range of the group's micro-batches among all micro-batches of this process.
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

    /// Returns whether this is rank 0, which writes the run's files and passes its events to the sinks.
    pub(crate) fn leads(&self) -> bool {
        self.processes.rank() == 0
    }

    pub(crate) fn micro_batching(&self) -> MicroBatching {
        self.micro_batching
    }

    /// Returns the number of groups per step.
    pub(crate) fn groups(&self) -> usize {
        self.micro_batching.groups.get() as usize
    }

    /// Returns the number of micro-batches per step.
    pub(crate) fn all(&self) -> usize {
        self.micro_batching.all().count()
    }

    /// Returns the micro-batches of this process, by their index in the step.
    pub(crate) fn local(&self) -> Range<usize> {
        held(self.all(), self.processes.rank(), self.processes.size())
    }

    /// Returns the micro-batches of each process in order of rank, by their index in the step.
    pub(crate) fn micro_batches_by_rank(&self) -> Vec<Range<usize>> {
        let all = self.all();
        let size = self.processes.size();
        (0..size).map(|rank| held(all, rank, size)).collect()
    }

    /// Returns the micro-batches of this process, by group and index.
    pub(crate) fn micro_batches(&self) -> Vec<MicroBatch> {
        let Range { start, end } = self.local();
        self.micro_batching.all().skip(start).take(end - start).collect()
    }

    /// Returns the groups of which this process runs micro-batches, in order.
    pub(crate) fn memberships(&self) -> &[GroupMembership] {
        &self.memberships
    }

    /// Returns the division of this process's batches into micro-batches.
    pub(crate) fn partition(&self) -> Partition {
        Partition::equal(self.micro_batching, self.rows, self.local().len())
    }

    /// Returns the number of collectives of this process so far.
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
    /// Returns the group's micro-batches of each of its processes, in order of rank.
    pub(crate) fn members(&self) -> &[Range<usize>] {
        &self.members
    }

    /// Returns the group's micro-batches that this process runs.
    pub(crate) fn micro_batches(&self) -> Range<usize> {
        self.members.get(self.processes.rank()).cloned().unwrap_or_default()
    }

    /// Returns the rows of a micro-batch: in the batch of the group if `micro_batch` counts those of the group, otherwise in the
    /// batch of this process.
    pub(crate) fn rows(&self, micro_batch: usize) -> MicroBatchRows {
        self.rows.of(micro_batch..micro_batch + 1)
    }

    /// Returns the rows of the group in the batch of this process.
    pub(crate) fn local_rows(&self) -> MicroBatchRows {
        self.rows.of(self.local.clone())
    }

    /// Converts a row of the group's batch to one of this process's batch; `None` if another process has it.
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

    /// Returns the micro-batch of a row in the group's batch.
    pub(crate) fn micro_batch_of(&self, row: Row) -> usize {
        self.rows.micro_batch_of(row)
    }

    /// Returns the process that runs a micro-batch, by its rank among the group's processes.
    pub(crate) fn owner(&self, micro_batch: usize) -> usize {
        self.members.iter().position(|micro_batches| micro_batches.contains(&micro_batch)).unwrap_or(0)
    }
}

/// Connects the subgroups that this process is a member of. All processes have to call it.
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
        // The members are neighbours, since processes run consecutive micro-batches.
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

/// This process among the processes of its machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalProcesses {
    /// The local rank, which selects the GPU.
    pub(crate) rank: usize,
    /// The number of processes on the machine.
    pub(crate) processes: usize,
}

impl Default for LocalProcesses {
    /// Returns a process that is alone on its machine.
    fn default() -> Self {
        Self { rank: 0, processes: 1 }
    }
}
