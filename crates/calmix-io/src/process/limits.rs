//! The limits on open files and connections, and the memory that is available to the process.
//!
//! The default limit of open files is 1,024 on most systems. A process has a connection to every other one, and the host of
//! the store several to each, so some 200 processes reach the limit, as does a dataset of a thousand files that stay open. A
//! process may raise its limit by itself up to a hard limit.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as the system allows. If that is too little, opening a file fails with its own
/// error.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // macOS refuses more than its kernel allows, even below its own limit.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Returns the maximum number of open files; `None` if unlimited.
pub fn open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Returns the memory that the system or the container has available, in bytes; `None` if unknown.
pub fn available_memory() -> Option<u64> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| mem_available(&text));
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    let container = number("/sys/fs/cgroup/memory.max")
        .map(|limit| limit.saturating_sub(number("/sys/fs/cgroup/memory.current").unwrap_or(0)));
    machine.into_iter().chain(container).min()
}

fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_raised_to_what_the_system_allows() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(256), maximum }).expect("a lower limit");
        assert_eq!(open_files(), Some(256));
        raise_open_files();
        assert_eq!(open_files(), maximum);
    }

    #[test]
    fn available_memory_is_read_from_the_system() {
        let text = "MemTotal:       32000000 kB\nMemFree:         1000000 kB\nMemAvailable:   20000000 kB\n";
        assert_eq!(mem_available(text), Some(20_000_000 << 10));
        assert_eq!(mem_available("MemTotal: 1 kB\n"), None);
        if cfg!(target_os = "linux") {
            assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
        }
    }
}
