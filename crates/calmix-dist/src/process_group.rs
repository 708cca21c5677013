//! The process group: all processes of a job, or a subgroup of them.

mod bytes;
mod connect;
mod handshake;
mod reach;
mod sum;
mod tensors;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tch::{Device, Tensor};

use crate::binding::{C10dError, C10dGroup, Store};
use crate::error::{DistError, Failure, Operation};
use crate::liveness::{Liveness, LivenessReport};
use crate::neighbour::Neighbour;

/// The processes of a job that call the same operations in the same order.
///
/// Each process uses it from one thread. Sizes have to agree where an operation requires it. An operation returns when it is
/// finished on this rank, or fails on all ranks that are alive.
///
/// After a failure, the contents of the operation's tensors are undefined, and the group refuses every further operation with
/// [`DistError::Broken`].
pub struct ProcessGroup {
    rank: usize,
    size: usize,
    /// The rank of this group's rank 0 among all processes of the job.
    first: usize,
    meter: Arc<Meter>,
    /// The number of calls of each operation in this group, without its subgroups.
    calls: RefCell<BTreeMap<Operation, u64>>,
    /// The connection; `None` for a group of one process.
    connection: Option<Connection>,
}

/// Totals over the operations of this process, including those of its subgroups.
#[derive(Default)]
struct Meter {
    sent: AtomicU64,
    waited: AtomicU64,
}

/// The connections of a group to its peers, and its store.
struct Connection {
    /// Dropped first: it announces that this process leaves, before the connections close.
    liveness: Liveness,
    /// Closed on the first failure, which makes the peers' operations fail too.
    backends: RefCell<Option<Backends>>,
    store: Store,
    network: NetworkAddress,
    timeout: Duration,
}

/// The c10d backends: Gloo for tensors of the host, NCCL for those of the GPU.
struct Backends {
    /// Dropped first, because it holds connections.
    _neighbour: Neighbour,
    host: C10dGroup,
    device: Option<C10dGroup>,
}

impl Connection {
    /// Closes the connections after a failure.
    fn close(&self) {
        if let Some(device) = self.backends.take().as_mut().and_then(|backends| backends.device.as_mut()) {
            device.abort();
        }
    }
}

/// The address at which other processes reach this one.
#[derive(Clone)]
struct NetworkAddress {
    /// An address of this host that the other ranks can reach.
    address: String,
    /// The network interface to use instead; empty if none is named.
    interface: String,
    /// The rank that hosts the store; `None` if the launcher does.
    store_host: Option<usize>,
    device: Device,
}

impl ProcessGroup {
    /// Creates a group of one process. It has no connections, and every operation returns its input.
    pub fn alone() -> Self {
        Self::single(0, Arc::default())
    }

    fn single(first: usize, meter: Arc<Meter>) -> Self {
        Self { rank: 0, size: 1, first, meter, calls: RefCell::default(), connection: None }
    }

    /// Returns the rank of this process in the group, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of processes in the group.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the bytes of payload that this process has sent so far, including subgroups, computed by
    /// [`traffic`](crate::traffic).
    pub fn sent(&self) -> u64 {
        self.meter.sent.load(Ordering::Relaxed)
    }

    /// Returns the time that this process has spent in operations so far, including subgroups. Most of it is waiting for other
    /// ranks.
    pub fn waited(&self) -> Duration {
        Duration::from_micros(self.meter.waited.load(Ordering::Relaxed))
    }

    /// Returns the number of collectives of this kind in this group, without subgroups. A tree sum takes two.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.calls.borrow().get(&operation).copied().unwrap_or(0)
    }

    /// Waits until all processes of the group have called it.
    ///
    /// # Errors
    ///
    /// If a process does not call it in time.
    pub fn barrier(&self) -> Result<(), DistError> {
        self.run(Operation::Barrier, 0, None, C10dGroup::barrier)
    }

    /// Closes the connections. The other ranks' operations fail immediately instead of at their timeout, with errors that name
    /// this rank as the one that aborted.
    pub fn abort(&self) {
        if let Some(connection) = &self.connection {
            connection.liveness.report_failure(&self.noticed(Operation::Abort));
            connection.close();
        }
    }

    /// Runs an operation with the other ranks; on failure, announces it to them.
    fn run(
        &self,
        operation: Operation,
        bytes: u64,
        device: Option<Device>,
        action: impl FnOnce(&C10dGroup, &AtomicBool) -> Result<(), C10dError>,
    ) -> Result<(), DistError> {
        let Some(connection) = &self.connection else { return Ok(()) };
        let began = Instant::now();
        let outcome = {
            let backends = connection.backends.borrow();
            let Some(backends) = &*backends else {
                return Err(DistError::Broken { rank: self.first + self.rank, operation });
            };
            let group = match device {
                Some(device) if device.is_cuda() => backends.device.as_ref().ok_or(DistError::NoNccl)?,
                _ => &backends.host,
            };
            let failed = connection.liveness.failed();
            if failed.load(Ordering::Acquire) {
                Err(C10dError::new("another process noticed a failure"))
            } else {
                action(group, failed)
            }
        };
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.meter.waited.fetch_add(took, Ordering::Relaxed);
        match outcome {
            Ok(()) => {
                self.meter.sent.fetch_add(bytes, Ordering::Relaxed);
                *self.calls.borrow_mut().entry(operation).or_default() += 1;
                Ok(())
            }
            Err(error) => Err(self.failure(connection, operation, began, error)),
        }
    }

    fn failure(
        &self,
        connection: &Connection,
        operation: Operation,
        began: Instant,
        error: C10dError,
    ) -> DistError {
        connection.liveness.report_failure(&self.noticed(operation));
        connection.close();
        let (missing, store_lost, noticed_by) = match connection.liveness.wait_for_report() {
            LivenessReport::Missing { ranks, noticed_by } => {
                let others = Some(noticed_by).filter(|by| *by != self.noticed(operation));
                (ranks.into_iter().map(|rank| self.first + rank).collect(), false, others)
            }
            LivenessReport::StoreLost => (connection.network.store_host.into_iter().collect(), true, None),
        };
        DistError::Failed(Box::new(Failure {
            rank: self.first + self.rank,
            size: self.size,
            operation,
            elapsed: began.elapsed(),
            timeout: connection.timeout,
            missing,
            store_lost,
            noticed_by,
            message: error.message,
        }))
    }

    fn noticed(&self, operation: Operation) -> String {
        format!("rank {} in {operation}", self.first + self.rank)
    }

    fn argument(&self, operation: Operation, what: impl Into<String>) -> DistError {
        DistError::Argument { rank: self.first + self.rank, operation, what: what.into() }
    }
}

/// Returns the size in bytes of `elements` elements of the tensor's kind.
fn bytes_of(tensor: &Tensor, elements: i64) -> u64 {
    elements.unsigned_abs() * tensor.kind().elt_size_in_bytes() as u64
}

#[cfg(test)]
mod tests;
