//! Cores, and the threads that want them.

use std::fs;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use crate::number::counted;
use crate::terminal::warn;

/// The cores of this machine that may be used.
pub(crate) fn all() -> u64 {
    available_parallelism().map_or(1, NonZeroUsize::get) as u64
}

/// Says so if threads of the arithmetic do not have a core each.
pub(crate) fn warn_if_crowded(threads: u32) {
    if let Some(said) = crowded(threads.into(), all(), load()) {
        warn(&said);
    }
}

/// How many processes want a core, on systems that tell.
fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// What to say if threads do not have a core each: libtorch's wait for each other by spinning.
fn crowded(threads: u64, cores: u64, load: Option<f64>) -> Option<String> {
    if threads > cores {
        return Some(format!(
            "{threads} threads on {}: far slower than --threads {cores}",
            counted(cores, "core")
        ));
    }
    let load = load.filter(|load| threads > 1 && threads as f64 + load > cores as f64 + 0.5)?;
    let free = (cores as f64 - load).round().max(1.0);
    Some(format!(
        "other programs keep {load:.1} of {} busy: --threads {free} may be faster than {threads}",
        counted(cores, "core")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_want_a_core_each() {
        assert!(crowded(3, 2, None).is_some_and(|said| said.ends_with("--threads 2")));
        assert!(crowded(4, 4, Some(2.1)).is_some_and(|said| said.contains("--threads 2 ")));
        for (threads, cores, load) in [(2, 2, None), (2, 2, Some(0.3)), (1, 2, Some(9.0)), (2, 4, Some(2.4))]
        {
            assert_eq!(crowded(threads, cores, load), None, "{threads} {cores} {load:?}");
        }
    }
}
