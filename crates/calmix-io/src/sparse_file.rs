//! Detects files that are nearly all holes: they cost nothing to create, but time and memory to read.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};

/// The size in bytes from which a file is checked; reading a smaller one is harmless.
const FROM: u64 = 16 << 20;

/// A file with content takes up at least 1/1,024 of its length on disk, even if the file system compresses it.
const LEAST: u64 = 1_024;

/// Returns whether an open file, with these metadata, is nearly all holes.
pub fn is_hollow(file: &File, found: &Metadata) -> bool {
    let begins_with_zeros = || {
        let mut start = [0; 4_096];
        file.read_exact_at(&mut start, 0).is_ok() && start.iter().all(|&byte| byte == 0)
    };
    // `blocks` counts units of 512 bytes on every file system.
    is_hollow_by_size(found.len(), found.blocks().saturating_mul(512), begins_with_zeros)
}

/// Decides by size. Some network file systems report no stored bytes at all; there the start of the file decides.
fn is_hollow_by_size(length: u64, stored: u64, begins_with_zeros: impl FnOnce() -> bool) -> bool {
    length >= FROM && stored.saturating_mul(LEAST) < length && (stored > 0 || begins_with_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_files_differ_from_uncounted_blocks() {
        let length = 1 << 30;
        let mib = 1 << 20;
        assert!(is_hollow_by_size(length, 4_096, || false));
        assert!(!is_hollow_by_size(length, mib, || true) && !is_hollow_by_size(mib, 0, || true));
        // No stored bytes: either only holes, or a file system that does not report them.
        assert!(is_hollow_by_size(length, 0, || true) && !is_hollow_by_size(length, 0, || false));
    }
}
