//! The memory that is available to the process.

use std::fs;

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
    fn available_memory_is_read_from_the_system() {
        let text = "MemTotal:       32000000 kB\nMemFree:         1000000 kB\nMemAvailable:   20000000 kB\n";
        assert_eq!(mem_available(text), Some(20_000_000 << 10));
        assert_eq!(mem_available("MemTotal: 1 kB\n"), None);
        if cfg!(target_os = "linux") {
            assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
        }
    }
}
