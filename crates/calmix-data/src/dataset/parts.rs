//! The files that hold samples: found by index, checked and kept open.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use calmix_cloud::RemoteFolder;
use calmix_formats::error::FormatProblem;
use calmix_formats::read_at::ReadAt;
use calmix_io::safe_path::MAX_PATH_BYTES;

use super::open_parts::OpenParts;
use super::part_source::PartSource;
use super::table_files::{check_hash, wrong_length};
use crate::error::DataError;
use crate::manifest::{DatasetPart, Header, MAX_SAMPLE_BYTES, SHRUNK_FILE, check_part_path};
use crate::shrink::from_stored;

/// Bytes of an entry in the table: the offset and length of the name, the kind, and the length of the file.
const BYTES: u64 = 24;

/// The table of parts, and the parts that are open.
#[derive(Debug)]
pub(super) struct PartTable {
    table: ReadAt,
    names: ReadAt,
    count: u32,
    source: PartSource,
    prepared: PathBuf,
    open: Mutex<OpenParts>,
    shrunk: OnceLock<Arc<ReadAt>>,
}

impl PartTable {
    /// Opens the table in `prepared` and checks every path in it, in constant memory.
    pub(super) fn open(prepared: PathBuf, source: PartSource, header: &Header) -> Result<Self, DataError> {
        let count = header.parts;
        let table = ReadAt::open(&prepared, "parts.bin")?;
        let names = ReadAt::open(&prepared, "names.bin")?;
        if table.length() != u64::from(count) * BYTES {
            return Err(wrong_length(&table, u64::from(count) * BYTES));
        }
        check_hash(&table, &header.tables.parts)?;
        check_hash(&names, &header.tables.names)?;
        let open = Mutex::new(OpenParts::new(count, header.samples));
        let parts = Self { table, names, count, source, prepared, open, shrunk: OnceLock::new() };
        parts.check()?;
        Ok(parts)
    }

    pub(super) fn prepared(&self) -> &Path {
        &self.prepared
    }

    /// Returns the remote folder of the parts; `None` if they are local files.
    pub(super) fn remote(&self) -> Option<&Arc<RemoteFolder>> {
        self.source.remote()
    }

    pub(super) fn part(&self, index: u32) -> Result<DatasetPart, DataError> {
        if index >= self.count {
            let problem = format!("there is no part {index}; there are {} parts", self.count);
            return Err(DataError::format(self.table.path(), problem));
        }
        let mut record = [0; BYTES as usize];
        self.table.read(&mut record, u64::from(index) * BYTES)?;
        let entry = PartEntry::from_bytes(record);
        let mut name = vec![0; entry.checked_name_length().map_err(|problem| self.bad(index, problem))?];
        self.names.read(&mut name, entry.name)?;
        self.checked(index, entry, name)
    }

    /// Returns a part that is open, opening it if necessary.
    pub(super) fn opened(&self, index: u32) -> Result<Arc<ReadAt>, DataError> {
        // The cache stays valid if a thread panics while it holds the lock.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = open.take(index) {
            return Ok(part);
        }
        if self.source.remote().is_some() {
            // Closing them frees disk space, which the next fetch may need.
            open.close_removed();
        }
        drop(open);
        let part = self.part(index)?;
        if part.shrunk {
            return self.opened_shrunk();
        }
        let file = if part.unpacked {
            ReadAt::open(&self.prepared, &part.path)?
        } else {
            self.source.open(&part.path, self.count == 1)?
        };
        if file.length() != part.length {
            let problem =
                format!("the file has {} bytes, but it had {} when prepared", file.length(), part.length);
            let error = DataError::changed(file.path(), problem);
            return Err(error.hint("prepare the dataset again"));
        }
        let opened = Arc::new(file);
        self.open.lock().unwrap_or_else(PoisonError::into_inner).keep(index, &opened);
        Ok(opened)
    }

    /// Returns the file of all shrunk images, which stays open.
    fn opened_shrunk(&self) -> Result<Arc<ReadAt>, DataError> {
        if let Some(opened) = self.shrunk.get() {
            return Ok(Arc::clone(opened));
        }
        let file = ReadAt::open(&self.prepared, SHRUNK_FILE)?;
        // Two threads may open it at the same time; only one handle is kept.
        Ok(Arc::clone(self.shrunk.get_or_init(|| Arc::new(file))))
    }

    /// Returns whether a part is the file from which the image stored as `bytes` was shrunk.
    pub(super) fn is_original(&self, part: &DatasetPart, bytes: &[u8]) -> Result<bool, DataError> {
        let file = self.source.open_original(&part.path)?;
        let Some((_, checksum)) = from_stored(bytes) else { return Ok(false) };
        if file.length() != part.length || part.length > MAX_SAMPLE_BYTES.into() {
            return Ok(false);
        }
        let mut original = vec![0; part.length as usize];
        file.read(&mut original, 0)?;
        Ok(crc32c::crc32c(&original) == checksum)
    }

    /// Checks that the names follow each other without gap or overlap and stay below their root.
    fn check(&self) -> Result<(), DataError> {
        const CHUNK_PARTS: u32 = 512;
        let mut next = 0;
        let (mut records, mut names) = (Vec::new(), Vec::new());
        for first in (0..self.count).step_by(CHUNK_PARTS as usize) {
            let count = CHUNK_PARTS.min(self.count - first) as usize;
            records.resize(count * BYTES as usize, 0);
            self.table.read(&mut records, u64::from(first) * BYTES)?;
            let (entries, _) = records.as_chunks();
            let entries: Vec<PartEntry> = entries.iter().copied().map(PartEntry::from_bytes).collect();
            let begin = next;
            for (index, entry) in (first..).zip(&entries) {
                let length = entry.checked_name_length().map_err(|problem| self.bad(index, problem))?;
                if entry.name != next {
                    let problem = format!("its name begins at byte {}, expected {next}", entry.name);
                    return Err(self.bad(index, FormatProblem::Format(problem)));
                }
                next += length as u64;
            }
            names.resize((next - begin) as usize, 0);
            self.names.read(&mut names, begin)?;
            let mut rest = names.as_slice();
            for (index, entry) in (first..).zip(entries) {
                let (name, after) = rest.split_at_checked(entry.name_length as usize).unwrap_or_default();
                rest = after;
                self.checked(index, entry, name.to_vec())?;
            }
        }
        if next == self.names.length() { Ok(()) } else { Err(wrong_length(&self.names, next)) }
    }

    fn checked(&self, index: u32, entry: PartEntry, name: Vec<u8>) -> Result<DatasetPart, DataError> {
        let (unpacked, shrunk) = match entry.kind {
            0 => (false, false),
            1 => (true, false),
            2 => (false, true),
            other => {
                let problem = format!("its kind is {other}, expected 0, 1 or 2");
                return Err(self.bad(index, FormatProblem::Format(problem)));
            }
        };
        let not_text = |_| self.bad(index, FormatProblem::Format("its path is not UTF-8".into()));
        let path = String::from_utf8(name).map_err(not_text)?;
        check_part_path(&path).map_err(|problem| self.bad(index, problem))?;
        Ok(DatasetPart { path, unpacked, shrunk, length: entry.length })
    }

    fn bad(&self, index: u32, problem: FormatProblem) -> DataError {
        DataError::new(self.table.path(), problem)
            .at(format!("part {index}"))
            .hint("prepare the dataset again")
    }
}

#[derive(Debug, Clone, Copy)]
struct PartEntry {
    name: u64,
    name_length: u32,
    kind: u32,
    length: u64,
}

impl PartEntry {
    fn from_bytes(bytes: [u8; BYTES as usize]) -> Self {
        let number = |from: usize, count: usize| {
            bytes
                .iter()
                .skip(from)
                .take(count)
                .rev()
                .fold(0_u64, |number, &byte| number << 8 | u64::from(byte))
        };
        Self {
            name: number(0, 8),
            name_length: number(8, 4) as u32,
            kind: number(12, 4) as u32,
            length: number(16, 8),
        }
    }

    fn checked_name_length(self) -> Result<usize, FormatProblem> {
        let length = self.name_length as usize;
        if length <= MAX_PATH_BYTES {
            Ok(length)
        } else {
            Err(FormatProblem::Limit(format!("its path is too long: {length} bytes")))
        }
    }
}
