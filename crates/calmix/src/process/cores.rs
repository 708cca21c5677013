//! CPU cores, and a warning if a command starts more threads than there are.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use crate::output::format::counted;
use crate::terminal::warn;

/// Returns the number of cores that this process may use.
pub fn available() -> u64 {
    available_parallelism().map_or(1, NonZeroUsize::get) as u64
}

/// Warns if `processes` of `threads` each are more than the cores of this machine: libtorch's threads spin while they wait
/// for each other.
pub fn warn_if_oversubscribed(threads: u32, processes: usize) {
    let message = more_than_cores(u64::from(threads), processes.max(1) as u64, available());
    if let Some(message) = message {
        warn(&message);
    }
}

fn more_than_cores(threads: u64, processes: u64, cores: u64) -> Option<String> {
    if threads * processes <= cores {
        return None;
    }
    let on = format!("{} on {}", counted(threads, "thread"), counted(cores, "core"));
    Some(match processes {
        1 => format!("{on}: much slower than --threads {cores}"),
        _ if processes > cores => {
            format!(
                "{processes} processes of {on}: much slower than {} of 1 thread",
                counted(cores, "process")
            )
        }
        _ => format!("{processes} processes of {on}: much slower than --threads {}", cores / processes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_than_cores() {
        let said = |threads, processes, cores| more_than_cores(threads, processes, cores).unwrap_or_default();
        assert_eq!(said(3, 1, 2), "3 threads on 2 cores: much slower than --threads 2");
        assert_eq!(said(2, 2, 2), "2 processes of 2 threads on 2 cores: much slower than --threads 1");
        assert_eq!(
            said(1, 3, 2),
            "3 processes of 1 thread on 2 cores: much slower than 2 processes of 1 thread"
        );
        assert_eq!([said(2, 1, 2), said(1, 2, 2), said(2, 4, 8)], [""; 3]);
    }
}
