//! CPU cores, and a warning if there are more threads than free cores.

use std::fs;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use crate::format::counted;
use crate::terminal::warn;

/// The number of cores that this process may use.
pub(crate) fn available() -> u64 {
    available_parallelism().map_or(1, NonZeroUsize::get) as u64
}

/// Warns if there are more threads than free cores.
pub(crate) fn warn_if_oversubscribed(threads: u32) {
    if let Some(message) = oversubscribed(threads.into(), available(), load()) {
        warn(&message);
    }
}

/// The load average, on Linux.
fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// The warning if there are more threads than free cores: libtorch's threads spin while they wait for each other.
fn oversubscribed(threads: u64, cores: u64, load: Option<f64>) -> Option<String> {
    if threads > cores {
        return Some(format!(
            "{threads} threads on {}: much slower than --threads {cores}",
            counted(cores, "core")
        ));
    }
    let load = load.filter(|load| threads > 1 && threads as f64 + load > cores as f64 + 0.5)?;
    let free = (cores as f64 - load).round().max(1.0);
    Some(format!(
        "other programs use {load:.1} of {}: --threads {free} may be faster than {threads}",
        counted(cores, "core")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_than_free_cores() {
        assert!(oversubscribed(3, 2, None).is_some_and(|message| message.ends_with("--threads 2")));
        assert!(oversubscribed(4, 4, Some(2.1)).is_some_and(|message| message.contains("--threads 2 ")));
        for (threads, cores, load) in [(2, 2, None), (2, 2, Some(0.3)), (1, 2, Some(9.0)), (2, 4, Some(2.4))]
        {
            assert_eq!(oversubscribed(threads, cores, load), None, "{threads} {cores} {load:?}");
        }
    }
}
