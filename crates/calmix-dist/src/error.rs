//! The errors of this crate.

use std::fmt;
use std::time::Duration;

use calmix_io::error::ErrorKind;
use tch::TchError;

/// The reason why a collective failed or was refused, or why a process cannot join its group.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DistError {
    /// An operation failed. Its tensors have undefined contents, and the group refuses further operations.
    #[error("{0}")]
    Failed(Box<Failure>),
    /// The group refused the operation, because an earlier one failed.
    #[error(
        "rank {rank}: {operation} is refused, because an earlier operation of the process group failed; restart all processes"
    )]
    Broken {
        /// The rank that called it.
        rank: usize,
        operation: Operation,
    },
    /// Two processes claim the same rank.
    #[error(
        "rank {rank} of {size} has already joined: two processes have the same rank, or two jobs use {place}; give every \
         process its own RANK and every job its own MASTER_PORT"
    )]
    Taken {
        /// The rank that two processes claim.
        rank: usize,
        /// The number of processes of the group.
        size: usize,
        /// The place where the processes meet.
        place: String,
    },
    /// The arguments of an operation are inconsistent; nothing was sent.
    #[error("rank {rank}: {operation} is not possible: {what}")]
    Argument {
        /// The rank that called it.
        rank: usize,
        operation: Operation,
        what: String,
    },
    /// The tensors are on a GPU, and this build has no NCCL.
    #[error(
        "GPU tensors cannot be exchanged, because this calmix was built without NCCL; build it with the feature `nccl`, or \
         train on the CPU"
    )]
    NoNccl,
    /// libtorch failed to create or change a tensor.
    #[error("libtorch failed: {}", .0.to_string().lines().next().unwrap_or_default())]
    Libtorch(#[from] TchError),
}

impl DistError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Taken { .. } | Self::NoNccl => ErrorKind::Mistake,
            Self::Failed(_) | Self::Broken { .. } | Self::Argument { .. } | Self::Libtorch(_) => {
                ErrorKind::Failure
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The rank that reports it, among all processes of the job.
    pub rank: usize,
    /// The number of processes in the group.
    pub size: usize,
    pub operation: Operation,
    pub elapsed: Duration,
    pub timeout: Duration,
    /// The ranks that did not respond after the failure, among all processes of the job.
    pub missing: Vec<usize>,
    /// Whether the host of the store cannot be reached, so that no rank could be queried.
    pub store_lost: bool,
    /// The rank that noticed the failure first, with its operation, if it was another rank.
    pub noticed_by: Option<String>,
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, operation, elapsed, timeout, message, .. } = self;
        let (elapsed, timeout) = (elapsed.as_secs_f64(), timeout.as_secs_f64());
        write!(
            f,
            "rank {rank}: {operation} failed after {elapsed:.2} s (limit {timeout} s): {}",
            self.reason()
        )?;
        if let Some(noticed) = &self.noticed_by {
            write!(f, "; first noticed by {noticed}")?;
        }
        write!(f, " (c10d: {message})")
    }
}

impl Failure {
    fn reason(&self) -> String {
        let connects = self.operation == Operation::Connect;
        match (&*self.missing, self.store_lost) {
            ([host], true) => {
                let why = if connects { "; check that it was started" } else { ": it has died or hangs" };
                format!("the process that hosts the store (rank {host}) cannot be reached{why}")
            }
            (_, true) => "the store that connects the processes cannot be reached".to_owned(),
            ([], false) if connects || self.operation == Operation::Subgroup => {
                "all processes joined, but could not connect to each other".to_owned()
            }
            ([], false) => "all processes are alive".to_owned(),
            (late, false) if connects => format!(
                "{} did not join; check that all are started with the same MASTER_ADDR and MASTER_PORT",
                ranks(late)
            ),
            ([one], false) => format!("rank {one} does not respond: it has died, ended or hangs"),
            (many, false) => format!("{} do not respond: they have died, ended or hang", ranks(many)),
        }
    }
}

fn ranks(ranks: &[usize]) -> String {
    let names: Vec<String> = ranks.iter().map(ToString::to_string).collect();
    format!("rank{} {}", if ranks.len() == 1 { "" } else { "s" }, names.join(", "))
}

/// An operation of a process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Operation {
    Connect,
    Subgroup,
    AllReduce,
    AllGather,
    AllToAll,
    TreeSum,
    AllGatherBytes,
    AllToAllBytes,
    BroadcastBytes,
    Barrier,
    Abort,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Subgroup => "connecting a subgroup",
            Self::AllReduce => "all-reduce",
            Self::AllGather => "all-gather",
            Self::AllToAll => "all-to-all",
            Self::TreeSum => "tree sum",
            Self::AllGatherBytes => "all-gather of bytes",
            Self::AllToAllBytes => "all-to-all of bytes",
            Self::BroadcastBytes => "broadcast of bytes",
            Self::Barrier => "barrier",
            Self::Abort => "abort",
        })
    }
}
