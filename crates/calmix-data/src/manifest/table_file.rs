//! A table of a prepared dataset while it is written: hashed on its way to the disk.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A table that is being written.
#[derive(Debug)]
pub(super) struct TableFile {
    file: BufWriter<File>,
    hasher: blake3::Hasher,
}

impl TableFile {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(File::create_new(path)?), hasher: blake3::Hasher::new() })
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.file.write_all(bytes)
    }

    /// Puts everything onto the disk; returns the hash of it, in hexadecimal.
    pub(super) fn finish(&mut self) -> io::Result<String> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        Ok(self.hasher.finalize().to_hex().to_string())
    }
}
