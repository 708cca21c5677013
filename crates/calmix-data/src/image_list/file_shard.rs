//! Which files of a list one of several processes reads.

use std::ffi::OsStr;

/// One of `count` shards of the files of a list. The hash of its relative path puts a file into a shard, so that the shards
/// depend neither on the order of the files nor on the place of the folder, and a process passes the files of the
/// others without opening them. A `.tar` is one file: all its images are in one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileShard {
    /// From 0 to `count` − 1.
    pub index: u64,
    /// The number of shards.
    pub count: u64,
}

impl FileShard {
    /// Whether the file of this path is in the shard.
    pub fn has(self, relative: &OsStr) -> bool {
        let hash = blake3::hash(relative.as_encoded_bytes());
        // The first bytes of a hash are as good as all of them.
        let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
        u64::from_be_bytes([a, b, c, d, e, f, g, h]).checked_rem(self.count) == Some(self.index)
    }
}
