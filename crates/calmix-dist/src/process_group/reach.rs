//! The route to the master: its store, and this host's address on the way there.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use crate::binding::{C10dError, Store};
use crate::error::{DistError, Failure, Operation};
use crate::launch::LaunchInfo;

/// Opens the store of a job: the rank that hosts it listens, and the others connect.
pub(super) fn open(launch: &LaunchInfo, timeout: Duration) -> Result<Store, DistError> {
    let ((host, port), began, operation) = (&launch.master, Instant::now(), Operation::Connect);
    if launch.store_host.rank() == Some(launch.rank) {
        // If all processes are on this host, a loopback address is enough. Otherwise listen on all addresses, because another
        // host may know this one by another name.
        let loopback = host.parse::<IpAddr>().ok().filter(IpAddr::is_loopback);
        let store = match loopback.filter(|_| launch.local_world == launch.world) {
            Some(address) => Store::host_on(address, *port, timeout),
            None => Store::tcp(host, *port, true, timeout),
        };
        return store.map_err(|error| {
            let what =
                format!("port {port} cannot be opened; choose another MASTER_PORT ({})", error.message);
            DistError::Argument { rank: launch.rank, operation, what }
        });
    }
    let left = || timeout.saturating_sub(began.elapsed());
    let store = wait_for_port(host, *port, left).and_then(|()| Store::tcp(host, *port, false, left()));
    store.map_err(|error| {
        DistError::Failed(Box::new(Failure {
            rank: launch.rank,
            size: launch.world,
            operation,
            elapsed: began.elapsed(),
            timeout,
            missing: launch.store_host.rank().into_iter().collect(),
            store_lost: true,
            noticed_by: None,
            message: error.message,
        }))
    })
}

/// Waits until a process listens on the port. c10d would try each address of a host for the whole timeout.
fn wait_for_port(host: &str, port: u16, left: impl Fn() -> Duration) -> Result<(), C10dError> {
    let mut pause = Duration::from_millis(10);
    loop {
        // Retry, because the name may not resolve yet in a cluster that is still starting.
        let mut last = None;
        for address in (host, port).to_socket_addrs().into_iter().flatten() {
            let patience = left().clamp(Duration::from_millis(1), Duration::from_secs(5));
            match TcpStream::connect_timeout(&address, patience) {
                Ok(_) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        if left() <= pause {
            let why =
                last.map_or_else(|| "the host name does not resolve".to_owned(), |error| error.to_string());
            return Err(C10dError::new(format!("{host}:{port}: {why}")));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}

/// Returns this host's address on the way to the master, and the master's address as resolved here. Sends nothing.
pub(super) fn route(host: &str, port: u16) -> (IpAddr, IpAddr) {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut masters: Vec<_> = (host, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    // All processes have to use the same version of IP.
    masters.sort_by_key(SocketAddr::is_ipv6);
    let reached = masters.iter().find_map(|master| {
        let any = if master.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect(master).ok()?;
        Some((socket.local_addr().ok()?.ip(), master.ip()))
    });
    reached.unwrap_or((loopback, loopback))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::launch::{Launcher, StoreHost};

    /// A store lets everyone who reaches it write, so processes on one host must not listen on its network.
    #[test]
    fn processes_on_one_host_listen_on_loopback_alone() {
        let listens_elsewhere = |local_world: usize| {
            let free =
                TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr()).expect("a free port");
            let launch = LaunchInfo {
                rank: 0,
                world: 2,
                local_rank: 0,
                local_world,
                master: ("127.0.0.1".to_owned(), free.port()),
                job: String::new(),
                store_host: StoreHost::FirstRank,
                launcher: Launcher::Variables,
            };
            let _store = open(&launch, Duration::from_mins(1)).expect("a store");
            // Another address of this host, as those of its network are.
            TcpStream::connect(("127.0.0.2", free.port())).is_ok()
        };
        assert!(!listens_elsewhere(2));
        assert!(listens_elsewhere(1), "a rank on another host could not connect");
    }
}
