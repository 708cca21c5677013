//! How processes find each other.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tch::Device;

use super::reach::{open, route};
use super::{Groups, Link, Meter, Network, Processes};
use crate::binding::{Group, Store, Thrown};
use crate::error::{DistError, Failure, Operation};
use crate::launch::Place;
use crate::roll_call::{RollCall, Seat, Verdict, absent, arrive, hear};

/// Processes that are about to meet.
struct Meeting<'a> {
    operation: Operation,
    /// Where, for a sentence.
    place: String,
    store: Store,
    network: Network,
    rank: usize,
    size: usize,
    first: usize,
    timeout: Duration,
    began: Instant,
    meter: &'a Arc<Meter>,
}

impl Processes {
    /// Meets the other processes of the job and connects to all of them.
    ///
    /// Tensors on `device` will be exchanged; on a GPU that takes the feature `nccl`. `timeout` is how long every single
    /// operation may take, this one included. `GLOO_SOCKET_IFNAME` names a network interface where the one that leads to
    /// the master is not the right one.
    ///
    /// # Errors
    ///
    /// When not all processes come in time, when two have the same rank, or when the port is in use.
    pub fn connect(place: &Place, device: Device, timeout: Duration) -> Result<Self, DistError> {
        let (host, port) = &place.master;
        if place.world < 2 {
            return Ok(Self::alone());
        }
        if device.is_cuda() && !cfg!(feature = "nccl") {
            return Err(DistError::NoNccl);
        }
        let began = Instant::now();
        let interface = std::env::var("GLOO_SOCKET_IFNAME").unwrap_or_default();
        let mut meeting = Meeting {
            operation: Operation::Connect,
            place: format!("{host}:{port}"),
            store: open(place, timeout)?,
            network: Network { address: String::new(), interface, keeper: place.keeper.rank(), device },
            rank: place.rank,
            size: place.world,
            first: 0,
            timeout,
            began,
            meter: &Arc::default(),
        };
        // Neither an earlier attempt nor another job that was given the same port is met by mistake.
        meeting.store = meeting.prefixed(&format!("calmix/{}/{}", place.job, place.attempt))?;
        let (ours, masters) = route(host, *port);
        meeting.gather(&masters.to_string())?;
        meeting.network.address = meeting.address(ours)?.to_string();
        meeting.link()
    }

    /// Meets processes of the same machine through a file, which must not exist before.
    ///
    /// # Errors
    ///
    /// As [`Processes::connect`].
    pub fn through_file(path: &Path, rank: usize, size: usize, timeout: Duration) -> Result<Self, DistError> {
        if size < 2 {
            return Ok(Self::alone());
        }
        let began = Instant::now();
        let place = path.display().to_string();
        let store = Store::file(path, size, timeout).map_err(|thrown| {
            let what = format!("the file {place} cannot be used: {}", thrown.message);
            DistError::Argument { rank, operation: Operation::Connect, what }
        })?;
        let meeting = Meeting {
            operation: Operation::Connect,
            place,
            store,
            network: Network {
                address: Ipv4Addr::LOCALHOST.to_string(),
                interface: String::new(),
                keeper: None,
                device: Device::Cpu,
            },
            rank,
            size,
            first: 0,
            timeout,
            began,
            meter: &Arc::default(),
        };
        meeting.gather("")?;
        meeting.link()
    }

    /// The processes of these ranks, for operations among themselves; `None` where this process is not one of them.
    ///
    /// Only they have to call it. A name may be used once for the same ranks.
    ///
    /// # Errors
    ///
    /// When there are no such ranks, or as [`Processes::connect`].
    pub fn part(&self, name: &str, ranks: Range<usize>) -> Result<Option<Self>, DistError> {
        if ranks.is_empty() || ranks.end > self.size {
            let what = format!("there are no ranks {ranks:?} among {}", self.size);
            return Err(self.argument(Operation::Part, what));
        }
        if !ranks.contains(&self.rank) {
            return Ok(None);
        }
        let first = self.first + ranks.start;
        let Some(link) = self.link.as_ref().filter(|_| ranks.len() > 1) else {
            return Ok(Some(Self::only(self.first + self.rank, Arc::clone(&self.meter))));
        };
        if link.groups.borrow().is_none() {
            return Err(DistError::Broken { rank: self.first + self.rank, operation: Operation::Part });
        }
        let place = format!("part/{name}/{}-{}", ranks.start, ranks.end);
        let store = link.store.prefixed(&place);
        let meeting = Meeting {
            operation: Operation::Part,
            store: store.map_err(|thrown| self.argument(Operation::Part, thrown.message))?,
            place,
            network: link.network.clone(),
            rank: self.rank - ranks.start,
            size: ranks.len(),
            first,
            timeout: link.timeout,
            began: Instant::now(),
            meter: &self.meter,
        };
        meeting.gather("")?;
        meeting.link().map(Some)
    }
}

impl Meeting<'_> {
    /// Takes our seat, leaves a note for the others, and waits until everybody is there.
    fn gather(&self, note: &str) -> Result<(), DistError> {
        let seat = |rank: usize| format!("seat/{rank}");
        let taken =
            self.store.add(&format!("taken/{}", self.rank), 1).map_err(|thrown| self.failed(thrown))?;
        if taken > 1 {
            let (rank, size, place) = (self.first + self.rank, self.size, self.place.clone());
            return Err(DistError::Taken { rank, size, place });
        }
        let arrived = (self.store.set(&seat(self.rank), note))
            .and_then(|()| arrive(&self.store, "arrived", self.size, self.left()))
            .map_err(|thrown| self.failed(thrown))?;
        if arrived {
            return Ok(());
        }
        let missing = absent(&self.store, &seat, 0, self.size).map_err(|thrown| self.failed(thrown))?;
        let (others, patience) = (self.size - missing.len(), Duration::from_millis(500));
        // Where the store is lost by now we know what we wanted to know.
        let _ = hear(&self.store, others, self.keeps_store(), patience);
        let missing = missing.into_iter().map(|rank| self.first + rank).collect();
        Err(self.failure(missing, Thrown::new("they have not come")))
    }

    /// An address of this host for the others.
    ///
    /// Where a host's own name stands for a loopback address, as on Debian, the processes beside the master see nothing
    /// else; but what the others call the master is then an address of this host.
    fn address(&self, ours: IpAddr) -> Result<IpAddr, DistError> {
        if !ours.is_loopback() {
            return Ok(ours);
        }
        for rank in 0..self.size {
            let note = self.store.get(&format!("seat/{rank}")).map_err(|thrown| self.failed(thrown))?;
            if let Some(seen) = note.parse().ok().filter(|seen: &IpAddr| !seen.is_loopback()) {
                return Ok(seen);
            }
        }
        Ok(ours)
    }

    /// Connects to everybody.
    fn link(self) -> Result<Processes, DistError> {
        let Network { address, interface, device, .. } = &self.network;
        let patience = (self.timeout / 10).min(Duration::from_millis(450));
        let seat = Seat { rank: self.rank, size: self.size, keeps_store: self.keeps_store(), patience };
        // What is kept back is for finding out who is missing, so that the error comes at the timeout.
        let timeout = self.timeout.saturating_sub(patience);
        let store = |name: &str| self.prefixed(name);
        let failed = |thrown| self.failed(thrown);
        let roll_call = RollCall::listen(store("roll-call")?, seat).map_err(failed)?;
        let (gloo, nccl) = (store("gloo")?, store("nccl")?);
        let groups = Group::gloo(&gloo, self.rank, self.size, address, interface, timeout).and_then(|host| {
            let device = device.is_cuda().then(|| Group::nccl(&nccl, self.rank, self.size, timeout));
            Ok(Groups { host, device: device.transpose()? })
        });
        let groups = groups.map_err(|thrown| {
            roll_call.call(&format!("rank {} in {}", self.first + self.rank, self.operation));
            match roll_call.verdict() {
                Verdict::Silent { ranks, .. } => {
                    self.failure(ranks.into_iter().map(|rank| self.first + rank).collect(), thrown)
                }
                Verdict::StoreLost => self.failed(thrown),
            }
        })?;
        Ok(Processes {
            rank: self.rank,
            size: self.size,
            first: self.first,
            meter: Arc::clone(self.meter),
            calls: RefCell::default(),
            link: Some(Link {
                groups: Some(groups).into(),
                roll_call,
                store: self.store,
                network: self.network,
                timeout: self.timeout,
            }),
        })
    }

    fn prefixed(&self, prefix: &str) -> Result<Store, DistError> {
        self.store.prefixed(prefix).map_err(|thrown| self.failed(thrown))
    }

    fn keeps_store(&self) -> bool {
        self.network.keeper == Some(self.first + self.rank)
    }

    fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.began.elapsed())
    }

    /// The store did not do what it was asked for.
    fn failed(&self, thrown: Thrown) -> DistError {
        self.failure_of(self.network.keeper.into_iter().collect(), true, thrown)
    }

    /// These did not come, or not all could be connected.
    fn failure(&self, missing: Vec<usize>, thrown: Thrown) -> DistError {
        self.failure_of(missing, false, thrown)
    }

    fn failure_of(&self, missing: Vec<usize>, store_lost: bool, thrown: Thrown) -> DistError {
        DistError::Failed(Box::new(Failure {
            rank: self.first + self.rank,
            size: self.size,
            operation: self.operation,
            elapsed: self.began.elapsed(),
            timeout: self.timeout,
            missing,
            store_lost,
            noticed_by: None,
            message: thrown.message,
        }))
    }
}
