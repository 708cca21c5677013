//! The processes of a job, or of a part of it.

mod bytes;
mod connect;
mod reach;
mod sum;
mod tensors;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tch::{Device, Tensor};

use crate::binding::{Group, Store, Thrown};
use crate::error::{DistError, Failure, Operation};
use crate::roll_call::{RollCall, Verdict};

/// Processes that do the same things in the same order.
///
/// One thread drives it. Every process has to call the same operations in the same order; sizes have to agree where an
/// operation says so. An operation returns when it is finished here, or fails on all processes that are still there.
///
/// After a failure the tensors given to the operation may hold anything, and every further operation is refused with
/// [`DistError::Broken`].
pub struct Processes {
    rank: usize,
    size: usize,
    /// Where our rank 0 stands among all processes of the job.
    first: usize,
    meter: Arc<Meter>,
    /// How often each operation was carried out by this very group.
    calls: RefCell<BTreeMap<Operation, u64>>,
    /// Nothing where there is nobody to talk to.
    link: Option<Link>,
}

/// What the operations of this process came to, those of its parts included.
#[derive(Default)]
struct Meter {
    /// Bytes.
    sent: AtomicU64,
    /// Microseconds.
    waited: AtomicU64,
}

/// What holds processes together.
struct Link {
    /// Closed at the first failure, which lets the others fail too.
    groups: RefCell<Option<Groups>>,
    roll_call: RollCall,
    store: Store,
    network: Network,
    timeout: Duration,
}

/// Connections for tensors of the host, and for those of the GPU.
struct Groups {
    host: Group,
    device: Option<Group>,
}

/// How processes reach each other.
#[derive(Clone)]
struct Network {
    /// An address of this host that the others can reach.
    address: String,
    /// The network interface to use instead; empty where none is named.
    interface: String,
    /// Which process of the job keeps the store, where it is one of them.
    keeper: Option<usize>,
    device: Device,
}

impl Processes {
    /// A world of one: no connections, and every operation gives back what it was given.
    pub fn alone() -> Self {
        Self::only(0, Arc::default())
    }

    fn only(first: usize, meter: Arc<Meter>) -> Self {
        Self { rank: 0, size: 1, first, meter, calls: RefCell::default(), link: None }
    }

    /// Which of these processes this is, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes of payload that this process has sent so far, its parts included, by [`traffic`](crate::traffic).
    pub fn sent(&self) -> u64 {
        self.meter.sent.load(Ordering::Relaxed)
    }

    /// How long this process has been in operations so far, its parts included: most of it is waiting for others.
    pub fn waited(&self) -> Duration {
        Duration::from_micros(self.meter.waited.load(Ordering::Relaxed))
    }

    /// How many collectives of this kind this group has carried out, those of its parts not included. A sum over parts
    /// takes two.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.calls.borrow().get(&operation).copied().unwrap_or(0)
    }

    /// Returns when all processes have come here.
    ///
    /// # Errors
    ///
    /// When one of them does not come in time.
    pub fn barrier(&self) -> Result<(), DistError> {
        self.run(Operation::Barrier, 0, None, Group::barrier)
    }

    /// Gives up: the others' operations fail at once instead of at their timeout, and name us as who gave up.
    pub fn abort(&self) {
        if let Some(link) = &self.link {
            link.roll_call.call(&self.noticed(Operation::Abort));
            link.groups.take();
        }
    }

    /// Carries out an operation together with the others; tells them where it fails.
    fn run(
        &self,
        operation: Operation,
        bytes: u64,
        device: Option<Device>,
        action: impl FnOnce(&Group, &AtomicBool) -> Result<(), Thrown>,
    ) -> Result<(), DistError> {
        let Some(link) = &self.link else { return Ok(()) };
        let began = Instant::now();
        let outcome = {
            let groups = link.groups.borrow();
            let Some(groups) = &*groups else {
                return Err(DistError::Broken { rank: self.first + self.rank, operation });
            };
            let group = match device {
                Some(device) if device.is_cuda() => groups.device.as_ref().ok_or(DistError::NoNccl)?,
                _ => &groups.host,
            };
            let called = link.roll_call.called();
            if called.load(Ordering::Acquire) {
                Err(Thrown::new("another process saw a failure"))
            } else {
                action(group, called)
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
            Err(thrown) => Err(self.failure(link, operation, began, thrown)),
        }
    }

    fn failure(&self, link: &Link, operation: Operation, began: Instant, thrown: Thrown) -> DistError {
        link.roll_call.call(&self.noticed(operation));
        link.groups.take();
        let (missing, store_lost, noticed_by) = match link.roll_call.verdict() {
            Verdict::Silent { ranks, noticed_by } => {
                let others = Some(noticed_by).filter(|by| *by != self.noticed(operation));
                (ranks.into_iter().map(|rank| self.first + rank).collect(), false, others)
            }
            Verdict::StoreLost => (link.network.keeper.into_iter().collect(), true, None),
        };
        DistError::Failed(Box::new(Failure {
            rank: self.first + self.rank,
            size: self.size,
            operation,
            elapsed: began.elapsed(),
            timeout: link.timeout,
            missing,
            store_lost,
            noticed_by,
            message: thrown.message,
        }))
    }

    fn noticed(&self, operation: Operation) -> String {
        format!("rank {} in {operation}", self.first + self.rank)
    }

    fn argument(&self, operation: Operation, what: impl Into<String>) -> DistError {
        DistError::Argument { rank: self.first + self.rank, operation, what: what.into() }
    }
}

/// The bytes of so many elements like those of a tensor.
fn bytes_of(tensor: &Tensor, elements: i64) -> u64 {
    elements.unsigned_abs() * tensor.kind().elt_size_in_bytes() as u64
}
