//! The memory of this process, if the system reports it.

/// Bytes now.
pub fn now() -> Option<u64> {
    status("VmRSS:")
}

/// Bytes at most, ever.
pub fn peak() -> Option<u64> {
    status("VmHWM:")
}

fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
}
