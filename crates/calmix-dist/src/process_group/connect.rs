//! Rendezvous: how processes find each other.

use std::cell::RefCell;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use calmix_io::system::raise_open_files;
use tch::Device;

use super::handshake::{Handshake, Met};
use super::reach::{open, route};
use super::{Backends, Connection, Meter, NetworkAddress, ProcessGroup};
use crate::binding::{C10dError, C10dGroup, Store};
use crate::error::{DistError, Failure, Operation};
use crate::launch::LaunchInfo;
use crate::liveness::{GroupMember, Liveness, LivenessReport, acknowledge, arrive, missing_ranks};
use crate::neighbour::Neighbour;

/// A process that joins a group.
struct Rendezvous<'a> {
    operation: Operation,
    /// The place where the processes meet, for error messages.
    place: String,
    store: Store,
    network: NetworkAddress,
    rank: usize,
    size: usize,
    first: usize,
    timeout: Duration,
    began: Instant,
    meter: &'a Arc<Meter>,
}

impl ProcessGroup {
    /// Meets the other processes of the job and connects to all of them.
    ///
    /// The group exchanges tensors on `device`; a GPU needs the feature `nccl`. `timeout` limits every single operation,
    /// including this one. `GLOO_SOCKET_IFNAME` names a network interface, if the one towards the master is not the right one.
    ///
    /// # Errors
    ///
    /// If not all processes join in time, two have the same rank, or the port is in use.
    pub fn connect(launch: &LaunchInfo, device: Device, timeout: Duration) -> Result<Self, DistError> {
        let (host, port) = &launch.master;
        if launch.world < 2 {
            return Ok(Self::alone());
        }
        if device.is_cuda() && !cfg!(feature = "nccl") {
            return Err(DistError::NoNccl);
        }
        raise_open_files();
        let began = Instant::now();
        let interface = std::env::var("GLOO_SOCKET_IFNAME").unwrap_or_default();
        let store_host = launch.store_host.rank();
        let mut rendezvous = Rendezvous {
            operation: Operation::Connect,
            place: format!("{host}:{port}"),
            store: open(launch, timeout)?,
            network: NetworkAddress { address: String::new(), interface, store_host, device },
            rank: launch.rank,
            size: launch.world,
            first: 0,
            timeout,
            began,
            meter: &Arc::default(),
        };
        // The prefix separates jobs on the same port, the handshake separates starts of the same job.
        rendezvous.store = rendezvous.prefixed(&format!("calmix/{}/{}", launch.job, launch.world))?;
        rendezvous.store = rendezvous.meet()?;
        let (ours, masters) = route(host, *port);
        rendezvous.join(&masters.to_string())?;
        rendezvous.network.address = rendezvous.address(ours)?.to_string();
        rendezvous.connect()
    }

    /// Creates a subgroup of these ranks; returns `None` on a rank that is not one of them.
    ///
    /// Only the ranks of the subgroup have to call it. A name may be used once for the same ranks.
    ///
    /// # Errors
    ///
    /// If there are no such ranks, or as [`ProcessGroup::connect`].
    pub fn subgroup(&self, name: &str, ranks: Range<usize>) -> Result<Option<Self>, DistError> {
        if ranks.is_empty() || ranks.end > self.size {
            let what = format!("there are no ranks {ranks:?} among {}", self.size);
            return Err(self.argument(Operation::Subgroup, what));
        }
        if !ranks.contains(&self.rank) {
            return Ok(None);
        }
        let first = self.first + ranks.start;
        let Some(connection) = self.connection.as_ref().filter(|_| ranks.len() > 1) else {
            return Ok(Some(Self::single(self.first + self.rank, Arc::clone(&self.meter))));
        };
        if connection.backends.borrow().is_none() {
            return Err(DistError::Broken { rank: self.first + self.rank, operation: Operation::Subgroup });
        }
        let place = format!("subgroup/{name}/{}-{}", ranks.start, ranks.end);
        let store = connection.store.prefixed(&place);
        let rendezvous = Rendezvous {
            operation: Operation::Subgroup,
            store: store.map_err(|error| self.argument(Operation::Subgroup, error.message))?,
            place,
            // Groups only exchange bytes of the host, and an NCCL communicator takes one or two gigabytes of a GPU.
            network: NetworkAddress { device: Device::Cpu, ..connection.network.clone() },
            rank: self.rank - ranks.start,
            size: ranks.len(),
            first,
            timeout: connection.timeout,
            began: Instant::now(),
            meter: &self.meter,
        };
        rendezvous.join("")?;
        rendezvous.connect().map(Some)
    }
}

impl Rendezvous<'_> {
    /// Meets the other processes of this start, and returns a store for the keys of this start only.
    fn meet(&self) -> Result<Store, DistError> {
        let handshake = Handshake {
            store: &self.store,
            rank: self.rank,
            size: self.size,
            hosted_by_first: self.network.store_host == Some(0),
            left: &|| self.left(),
        };
        match handshake.meet().map_err(|error| self.failed(error))? {
            Met::All(prefix) => self.prefixed(&prefix),
            Met::Missing(ranks) => Err(self.failure(ranks, C10dError::new("they have not joined"))),
            Met::Taken => Err(self.taken()),
        }
    }

    /// Claims the rank of this process, leaves a note for the other ranks, and waits until all have joined.
    fn join(&self, note: &str) -> Result<(), DistError> {
        let joined = |rank: usize| format!("joined/{rank}");
        let claims =
            self.store.add(&format!("claims/{}", self.rank), 1).map_err(|error| self.failed(error))?;
        if claims > 1 {
            return Err(self.taken());
        }
        let arrived = (self.store.set(&joined(self.rank), note))
            .and_then(|()| arrive(&self.store, "arrived", self.size, self.left()))
            .map_err(|error| self.failed(error))?;
        if arrived {
            return Ok(());
        }
        let missing =
            missing_ranks(&self.store, &joined, 0, self.size).map_err(|error| self.failed(error))?;
        let (others, patience) = (self.size - missing.len(), Duration::from_millis(500));
        // The missing ranks are already known, so losing the store does not matter.
        let _ = acknowledge(&self.store, others, self.hosts_store(), patience);
        let missing = missing.into_iter().map(|rank| self.first + rank).collect();
        Err(self.failure(missing, C10dError::new("they have not joined")))
    }

    /// Returns an address of this host for the other ranks.
    ///
    /// A host's own name may stand for a loopback address, as on Debian. Then the processes on the master's host know only that
    /// address. The other hosts reach the master by another address, which is also one of this host.
    fn address(&self, ours: IpAddr) -> Result<IpAddr, DistError> {
        if !ours.is_loopback() {
            return Ok(ours);
        }
        for rank in 0..self.size {
            let note = self.store.get(&format!("joined/{rank}")).map_err(|error| self.failed(error))?;
            if let Some(seen) = note.parse().ok().filter(|seen: &IpAddr| !seen.is_loopback()) {
                return Ok(seen);
            }
        }
        Ok(ours)
    }

    fn connect(self) -> Result<ProcessGroup, DistError> {
        let NetworkAddress { address, interface, device, .. } = &self.network;
        let patience = (self.timeout / 10).min(Duration::from_millis(450));
        let member =
            GroupMember { rank: self.rank, size: self.size, hosts_store: self.hosts_store(), patience };
        // Finding the missing ranks takes time, so c10d's timeout is shorter: the error then comes at the requested one.
        let timeout = self.timeout.saturating_sub(patience);
        let store = |name: &str| self.prefixed(name);
        let failed = |error| self.failed(error);
        let liveness = Liveness::listen(store("liveness")?, member).map_err(failed)?;
        let (gloo, nccl, reports) = (store("gloo")?, store("nccl")?, store("liveness")?);
        let host = C10dGroup::gloo(&gloo, self.rank, self.size, address, interface, timeout);
        let backends = host.and_then(|host| {
            let next = (self.rank + 1) % self.size;
            let why = format!("rank {}, which lost its connection", self.first + self.rank);
            let neighbour = Neighbour::watch(&host, next, liveness.lost(reports, next, why))?;
            let device = match device {
                Device::Cuda(gpu) => {
                    Some(C10dGroup::nccl(&nccl, self.rank, self.size, *gpu, timeout, self.left())?)
                }
                _ => None,
            };
            Ok(Backends { _neighbour: neighbour, host, device })
        });
        let backends = backends.map_err(|error| {
            liveness.report_failure(&format!("rank {} in {}", self.first + self.rank, self.operation));
            match liveness.wait_for_report() {
                LivenessReport::Missing { ranks, .. } => {
                    self.failure(ranks.into_iter().map(|rank| self.first + rank).collect(), error)
                }
                LivenessReport::StoreLost => self.failed(error),
            }
        })?;
        Ok(ProcessGroup {
            rank: self.rank,
            size: self.size,
            first: self.first,
            meter: Arc::clone(self.meter),
            calls: RefCell::default(),
            connection: Some(Connection {
                backends: Some(backends).into(),
                liveness,
                store: self.store,
                network: self.network,
                timeout: self.timeout,
            }),
        })
    }

    fn prefixed(&self, prefix: &str) -> Result<Store, DistError> {
        self.store.prefixed(prefix).map_err(|error| self.failed(error))
    }

    fn hosts_store(&self) -> bool {
        self.network.store_host == Some(self.first + self.rank)
    }

    fn taken(&self) -> DistError {
        DistError::Taken { rank: self.first + self.rank, size: self.size, place: self.place.clone() }
    }

    fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.began.elapsed())
    }

    /// Returns the error of a store that failed.
    fn failed(&self, error: C10dError) -> DistError {
        self.failure_of(self.network.store_host.into_iter().collect(), true, error)
    }

    /// Returns the error of ranks that did not join, or of connections that failed.
    fn failure(&self, missing: Vec<usize>, error: C10dError) -> DistError {
        self.failure_of(missing, false, error)
    }

    fn failure_of(&self, missing: Vec<usize>, store_lost: bool, error: C10dError) -> DistError {
        DistError::Failed(Box::new(Failure {
            rank: self.first + self.rank,
            size: self.size,
            operation: self.operation,
            elapsed: self.began.elapsed(),
            timeout: self.timeout,
            missing,
            store_lost,
            noticed_by: None,
            message: error.message,
        }))
    }
}
