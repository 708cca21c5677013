//! Files that are nearly all holes: they cost their maker nothing, and their reader minutes and memory.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};

/// Bytes from which a file is looked at: reading less of nothing hurts nobody.
const FROM: u64 = 16 << 20;

/// A file that holds anything takes up at least this part of its length, also where the file system compresses.
const LEAST: u64 = 1_024;

/// Returns whether an open file, with these metadata, is nearly all holes.
pub fn is_hollow(file: &File, found: &Metadata) -> bool {
    let begins_with_zeros = || {
        let mut start = [0; 4_096];
        file.read_exact_at(&mut start, 0).is_ok() && start.iter().all(|&byte| byte == 0)
    };
    // A block is 512 bytes, whatever the file system's are.
    is_hollow_by_size(found.len(), found.blocks().saturating_mul(512), begins_with_zeros)
}

/// Some network file systems count no bytes at all. There a file says by its beginning whether it is one of zeros.
fn is_hollow_by_size(length: u64, stored: u64, begins_with_zeros: impl FnOnce() -> bool) -> bool {
    length >= FROM && stored.saturating_mul(LEAST) < length && (stored > 0 || begins_with_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_holes_are_told_from_disks_that_do_not_count() {
        let length = 1 << 30;
        let mib = 1 << 20;
        assert!(is_hollow_by_size(length, 4_096, || false));
        assert!(!is_hollow_by_size(length, mib, || true) && !is_hollow_by_size(mib, 0, || true));
        // Nothing is stored: zeros on this disk, or a disk that does not count.
        assert!(is_hollow_by_size(length, 0, || true) && !is_hollow_by_size(length, 0, || false));
    }
}
