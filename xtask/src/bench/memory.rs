//! The memory that a process takes, as the kernel counts it: on Linux, nothing elsewhere.

use std::fs;

/// Resident bytes of a process.
pub(crate) fn resident(process: u32) -> Option<u64> {
    field(&status(process)?, "VmRSS:")
}

/// The most resident bytes that a process had since [`forget_peak`].
pub(crate) fn peak(process: u32) -> Option<u64> {
    field(&status(process)?, "VmHWM:")
}

/// Lets the peak of one of our own processes begin anew from what it has now.
pub(crate) fn forget_peak(process: u32) -> Option<()> {
    // proc(5): 5 resets the peak resident set size.
    fs::write(format!("/proc/{process}/clear_refs"), "5").ok()
}

fn status(process: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{process}/status")).ok()
}

fn field(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t   12 kB\nVmRSS:\t 3 kB\n";
        assert_eq!((field(status, "VmHWM:"), field(status, "VmRSS:")), (Some(12_288), Some(3_072)));
        assert_eq!(field(status, "VmSwap:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_peak_is_remembered_until_it_is_forgotten() {
        let own = std::process::id();
        // Enough that other tests of this process do not hide it.
        let large = std::hint::black_box(vec![1_u8; 256 << 20]);
        drop(large);
        let before = peak(own).expect("a peak");
        forget_peak(own).expect("our own process");
        assert!(peak(own).expect("a peak") + (128 << 20) < before);
        assert!(resident(own).expect("resident") <= before);
    }
}
