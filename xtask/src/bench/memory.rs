//! The memory of a process according to the kernel; available on Linux only.

use std::fs;

/// Returns the resident bytes of a process without those of files, such as the code of libraries, which grow as more code runs.
pub(crate) fn resident(process: u32) -> Option<u64> {
    field(&status(process)?, "RssAnon:")
}

/// Returns the maximum of [`resident`] since [`reset_peak`], or slightly less: it is the kernel's peak of all resident memory
/// minus the current memory of files.
pub(crate) fn peak(process: u32) -> Option<u64> {
    let status = status(process)?;
    let shared = field(&status, "RssFile:")? + field(&status, "RssShmem:")?;
    Some(field(&status, "VmHWM:")?.saturating_sub(shared))
}

/// Resets the peak of a child process to its current memory.
pub(crate) fn reset_peak(process: u32) -> Option<()> {
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
        let status = "Name:\tx\nVmHWM:\t   12 kB\nRssAnon:\t 3 kB\n";
        assert_eq!((field(status, "VmHWM:"), field(status, "RssAnon:")), (Some(12_288), Some(3_072)));
        assert_eq!(field(status, "VmSwap:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_peak_is_remembered_until_it_is_forgotten() {
        let process = std::process::id();
        // Enough that other tests of this process do not hide it.
        let large = std::hint::black_box(vec![1_u8; 256 << 20]);
        drop(large);
        let before = peak(process).expect("a peak");
        reset_peak(process).expect("our own process");
        assert!(peak(process).expect("a peak") + (128 << 20) < before);
        assert!(resident(process).expect("resident") <= before);
    }
}
