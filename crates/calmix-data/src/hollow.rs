//! Whether an open file is nearly all holes.

use std::fs::{File, Metadata};

/// Whether the file, of which the system says `found`, is nearly all holes.
#[cfg(unix)]
pub(crate) fn is_hollow(file: &File, found: &Metadata) -> bool {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let begins_with_zeros = || {
        let mut start = [0; 4_096];
        file.read_exact_at(&mut start, 0).is_ok() && start.iter().all(|&byte| byte == 0)
    };
    // A block is 512 bytes, whatever the file system's are.
    calmix_core::sparse_file::is_hollow(found.len(), found.blocks().saturating_mul(512), begins_with_zeros)
}

#[cfg(not(unix))]
pub(crate) fn is_hollow(_: &File, _: &Metadata) -> bool {
    false
}
