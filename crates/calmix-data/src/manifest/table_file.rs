//! Writes the tables of a prepared dataset and computes their hashes.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use calmix_formats::labels::drawn::Drawn;

use crate::groups::NO_GROUP;

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

    /// Flushes everything to disk, and returns the hash of the file in hexadecimal.
    pub(super) fn finish(&mut self) -> io::Result<String> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        Ok(self.hasher.finalize().to_hex().to_string())
    }
}

/// The file `drawn.bin`: how the label of every sample was drawn, a byte each. The file does not exist if this is not known of any
/// label.
#[derive(Debug)]
pub(super) struct DrawnTable {
    file: TableFile,
    /// Samples that were written.
    written: u64,
}

impl DrawnTable {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: TableFile::create(path)?, written: 0 })
    }

    /// Writes how the label of the sample `id` was drawn. Of earlier samples that were not written it is not known.
    pub(super) fn add(&mut self, id: u64, drawn: Drawn) -> io::Result<()> {
        if self.written > id {
            return Err(io::Error::other(format!("two draws of sample {id}")));
        }
        self.write_given(id)?;
        self.written += 1;
        self.file.write_all(&[drawn as u8])
    }

    /// Finishes the table of `samples` samples; returns the hash of the file.
    pub(super) fn finish(&mut self, samples: u64) -> io::Result<String> {
        self.write_given(samples)?;
        self.file.finish()
    }

    fn write_given(&mut self, end: u64) -> io::Result<()> {
        while self.written < end {
            self.file.write_all(&[Drawn::Given as u8])?;
            self.written += 1;
        }
        Ok(())
    }
}

/// The file `weights.bin`: the weight of the label of every sample, eight bytes each. The file does not exist if all are 1.
#[derive(Debug)]
pub(super) struct WeightTable {
    file: TableFile,
    /// Samples that were written.
    written: u64,
}

impl WeightTable {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: TableFile::create(path)?, written: 0 })
    }

    /// Writes the weight of the sample `id`. Earlier samples that were not written have the weight 1.
    pub(super) fn add(&mut self, id: u64, weight: f64) -> io::Result<()> {
        if self.written > id {
            return Err(io::Error::other(format!("two weights of sample {id}")));
        }
        self.write_ones(id)?;
        self.written += 1;
        self.file.write_all(&weight.to_le_bytes())
    }

    /// Finishes the table of `samples` samples; returns the hash of the file.
    pub(super) fn finish(&mut self, samples: u64) -> io::Result<String> {
        self.write_ones(samples)?;
        self.file.finish()
    }

    fn write_ones(&mut self, end: u64) -> io::Result<()> {
        while self.written < end {
            self.file.write_all(&1.0_f64.to_le_bytes())?;
            self.written += 1;
        }
        Ok(())
    }
}

/// The file `groups.bin`: the group of every sample, four bytes each. Memory holds 36 bytes per group. The file does not
/// exist without groups.
#[derive(Debug)]
pub(super) struct GroupTable {
    file: TableFile,
    /// The number of each group by the hash of its name: names may identify patients, and they are not needed.
    numbers: HashMap<[u8; 32], u32>,
    /// Samples that were written.
    written: u64,
}

impl GroupTable {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: TableFile::create(path)?, numbers: HashMap::new(), written: 0 })
    }

    /// Writes the group of the sample `id`. Earlier samples that were not written have none.
    pub(super) fn add(&mut self, id: u64, group: &str) -> io::Result<()> {
        if self.written > id {
            return Err(io::Error::other(format!("two groups of sample {id}")));
        }
        self.write_none(id)?;
        let next = u32::try_from(self.numbers.len()).unwrap_or(NO_GROUP);
        let number = *self.numbers.entry(*blake3::hash(group.as_bytes()).as_bytes()).or_insert(next);
        if number == NO_GROUP {
            return Err(io::Error::other(format!("more than {NO_GROUP} groups")));
        }
        self.written += 1;
        self.file.write_all(&number.to_le_bytes())
    }

    /// Finishes the table of `samples` samples; returns the number of groups and the hash of the file.
    pub(super) fn finish(&mut self, samples: u64) -> io::Result<(u32, String)> {
        self.write_none(samples)?;
        Ok((self.numbers.len() as u32, self.file.finish()?))
    }

    fn write_none(&mut self, end: u64) -> io::Result<()> {
        while self.written < end {
            self.file.write_all(&NO_GROUP.to_le_bytes())?;
            self.written += 1;
        }
        Ok(())
    }
}
