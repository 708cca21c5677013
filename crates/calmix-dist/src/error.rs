//! Why processes could not do together what they were asked for.

use std::fmt;
use std::time::Duration;

use tch::TchError;

/// Why processes could not do together what they were asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DistError {
    /// An operation did not come to its end. What its tensors hold is undefined, and the group is of no more use.
    #[error(transparent)]
    Failed(Box<Failure>),
    /// An earlier operation of the group failed, so this one was not begun.
    #[error(
        "rank {rank}: {operation} is refused, because an earlier operation of these processes failed; start all of them again"
    )]
    Broken {
        /// Who was asked.
        rank: usize,
        /// For what.
        operation: Operation,
    },
    /// Two processes say that they are the same one.
    #[error(
        "rank {rank} of {size} has joined already: two processes have the same rank, or two jobs meet at {place}; give every \
         process its own RANK and every job its own MASTER_PORT"
    )]
    Taken {
        /// The rank that two processes claim.
        rank: usize,
        /// How many processes there are to be.
        size: usize,
        /// Where they met.
        place: String,
    },
    /// What was given to an operation contradicts itself; nothing was sent.
    #[error("rank {rank}: {operation} cannot be done: {what}")]
    Argument {
        /// Who was asked.
        rank: usize,
        /// For what.
        operation: Operation,
        /// The contradiction.
        what: String,
    },
    /// Tensors of a GPU, without NCCL.
    #[error(
        "tensors of a GPU cannot be exchanged: this calmix was built without NCCL; build it with the feature `nccl`, or \
         train on the CPU"
    )]
    NoNccl,
    /// libtorch refused to make or to change a tensor.
    #[error("libtorch failed: {}", .0.to_string().lines().next().unwrap_or_default())]
    Libtorch(#[from] TchError),
}

/// What is known of an operation that did not come to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Who says it, counted over all processes of the job.
    pub rank: usize,
    /// How many processes there are in the group.
    pub size: usize,
    /// What was being done.
    pub operation: Operation,
    /// For how long.
    pub elapsed: Duration,
    /// How long was allowed.
    pub timeout: Duration,
    /// Who did not answer when asked after the failure, counted over all processes of the job.
    pub missing: Vec<usize>,
    /// Nobody could be asked: what keeps the store cannot be reached.
    pub store_lost: bool,
    /// Who noticed first and in which operation, where it was another process.
    pub noticed_by: Option<String>,
    /// What c10d said.
    pub message: String,
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (elapsed, timeout) = (self.elapsed.as_secs_f64(), self.timeout.as_secs_f64());
        write!(
            f,
            "rank {}: {} failed after {elapsed:.2} s (limit {timeout} s): ",
            self.rank, self.operation
        )?;
        match (&*self.missing, self.store_lost) {
            ([keeper], true) if self.operation == Operation::Connect => {
                write!(
                    f,
                    "the process that keeps the store (rank {keeper}) cannot be reached; was it started?"
                )?;
            }
            ([keeper], true) => {
                write!(
                    f,
                    "the process that keeps the store (rank {keeper}) cannot be reached; it died or is frozen"
                )?;
            }
            (_, true) => f.write_str("the store through which the processes met cannot be reached")?,
            ([], false) if matches!(self.operation, Operation::Connect | Operation::Part) => {
                f.write_str("the processes met, but could not be connected")?;
            }
            ([], false) => f.write_str("every process is alive")?,
            (late, false) if self.operation == Operation::Connect => {
                write!(
                    f,
                    "{} did not come; are all started, with the same MASTER_ADDR and MASTER_PORT?",
                    ranks(late)
                )?;
            }
            ([one], false) => write!(f, "rank {one} does not answer; it died, ended or is frozen")?,
            (many, false) => write!(f, "{} do not answer; they died, ended or are frozen", ranks(many))?,
        }
        if let Some(noticed) = &self.noticed_by {
            write!(f, "; first noticed by {noticed}")?;
        }
        write!(f, " (c10d says: {})", self.message)
    }
}

fn ranks(ranks: &[usize]) -> String {
    let names: Vec<String> = ranks.iter().map(ToString::to_string).collect();
    format!("rank{} {}", if ranks.len() == 1 { "" } else { "s" }, names.join(", "))
}

/// What processes do together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Operation {
    Connect,
    Part,
    AllReduce,
    Broadcast,
    AllGather,
    AllToAll,
    TreeSum,
    GatherBytes,
    ExchangeBytes,
    BroadcastBytes,
    Barrier,
    Abort,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Part => "connecting a part",
            Self::AllReduce => "all-reduce",
            Self::Broadcast => "broadcast",
            Self::AllGather => "all-gather",
            Self::AllToAll => "all-to-all",
            Self::TreeSum => "the sum over parts",
            Self::GatherBytes => "gathering bytes",
            Self::ExchangeBytes => "exchanging bytes",
            Self::BroadcastBytes => "broadcasting bytes",
            Self::Barrier => "barrier",
            Self::Abort => "abort",
        })
    }
}
