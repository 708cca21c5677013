//! The way to the master: its store, and which of our addresses leads there.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use crate::binding::{Store, Thrown};
use crate::error::{DistError, Failure, Operation};
use crate::launch::Place;

/// The store of a job.
pub(super) fn open(place: &Place, timeout: Duration) -> Result<Store, DistError> {
    let ((host, port), began, operation) = (&place.master, Instant::now(), Operation::Connect);
    if place.keeper.rank() == Some(place.rank) {
        return Store::tcp(host, *port, true, timeout).map_err(|thrown| {
            let what =
                format!("port {port} cannot be opened; choose another MASTER_PORT ({})", thrown.message);
            DistError::Argument { rank: place.rank, operation, what }
        });
    }
    let left = || timeout.saturating_sub(began.elapsed());
    let store = knock(host, *port, left).and_then(|()| Store::tcp(host, *port, false, left()));
    store.map_err(|thrown| {
        DistError::Failed(Box::new(Failure {
            rank: place.rank,
            size: place.world,
            operation,
            elapsed: began.elapsed(),
            timeout,
            missing: place.keeper.rank().into_iter().collect(),
            store_lost: true,
            noticed_by: None,
            message: thrown.message,
        }))
    })
}

/// Waits until somebody listens there: c10d tries each address of a host for the whole timeout.
fn knock(host: &str, port: u16, left: impl Fn() -> Duration) -> Result<(), Thrown> {
    let mut pause = Duration::from_millis(10);
    loop {
        // The name may not be known yet either, as in a cluster that is still starting.
        let mut last = None;
        for address in (host, port).to_socket_addrs().into_iter().flatten() {
            let patience = left().clamp(Duration::from_millis(1), Duration::from_secs(5));
            match TcpStream::connect_timeout(&address, patience) {
                Ok(_) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        if left() <= pause {
            let why = last.map_or_else(|| "the name is not known".to_owned(), |error| error.to_string());
            return Err(Thrown::new(format!("{host}:{port}: {why}")));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}

/// Our address on the way to the master, and the master's as it is called here. Nothing is sent.
pub(super) fn route(host: &str, port: u16) -> (IpAddr, IpAddr) {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut masters: Vec<_> = (host, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    // All processes have to speak the same version.
    masters.sort_by_key(SocketAddr::is_ipv6);
    let reached = masters.iter().find_map(|master| {
        let any = if master.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect(master).ok()?;
        Some((socket.local_addr().ok()?.ip(), master.ip()))
    });
    reached.unwrap_or((loopback, loopback))
}
