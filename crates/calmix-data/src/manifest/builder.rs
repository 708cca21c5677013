//! Writes a prepared dataset while a source is scanned: in one pass, in constant memory, and visible only when complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use calmix_formats::error::FormatError;
use calmix_formats::labels::drawn::Drawn;
use calmix_io::scratch_folder::ScratchFolder;

use super::{
    DRAWN_FILE, Encoding, Fingerprint, GROUPS_FILE, Header, MAX_SAMPLE_BYTES, NO_LABEL, PartKind,
    SHRUNK_FILE, SampleRecord, ShrunkImages, Subset, TableHashes, VERSION, WEIGHTS_FILE, check_part_path,
};
use crate::data_warning::DataWarning;
use crate::error::DataError;

use super::table_file::{DrawnTable, GroupTable, TableFile, WeightTable};

/// The prefix of the scratch folder for preparing a dataset.
pub const PREPARING: &str = ".preparing-";

/// Returns the folder that contains `target`, as a path that can be opened.
pub(crate) fn parent_of(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a scratch folder beside `target` for preparing it.
pub(crate) fn scratch_beside(target: &Path) -> Result<ScratchFolder, DataError> {
    Ok(ScratchFolder::new(parent_of(target), PREPARING)?)
}

/// The result of scanning a source.
#[derive(Debug)]
pub struct Prepared {
    /// The header that was written.
    pub header: Header,
    /// The files that could not be read and were left out.
    pub unreadable: Vec<DataError>,
    /// Probable mistakes that only the source can detect.
    pub warnings: Vec<DataWarning>,
}

/// Writes a prepared dataset.
///
/// Sources call [`subset`](Self::subset), then [`part`](Self::part) or [`unpack`](Self::unpack), then
/// [`sample`](Self::sample) for each sample in the order of its id.
#[derive(Debug)]
pub struct ManifestBuilder {
    /// Removed at the end, or on an error.
    _scratch: ScratchFolder,
    /// The folder of the tables, which is finally moved to `target`.
    folder: PathBuf,
    target: PathBuf,
    header: Header,
    content: Fingerprint,
    samples: TableFile,
    parts: TableFile,
    names: TableFile,
    name_bytes: u64,
    /// The table of groups; `None` until a sample has a group.
    groups: Option<GroupTable>,
    /// The table of draws; `None` until a label was drawn in a known way.
    drawn: Option<DrawnTable>,
    /// The table of weights; `None` until a label has another weight than 1.
    weights: Option<WeightTable>,
    /// The file of shrunk images; `None` until an image is shrunk.
    shrunk: Option<Unpacked>,
    unreadable: Vec<DataError>,
    warnings: Vec<DataWarning>,
}

/// A part that is being unpacked into the prepared folder.
#[derive(Debug)]
pub struct Unpacked {
    /// Its index.
    pub part: u32,
    path: PathBuf,
    file: BufWriter<File>,
    length: u64,
}

/// The checksum, content hash and length of a sample's bytes.
#[derive(Debug)]
pub(crate) struct SampleDigest {
    pub(crate) length: usize,
    pub(crate) checksum: u32,
    pub(crate) content: blake3::Hash,
}

impl SampleDigest {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self { length: bytes.len(), checksum: crc32c::crc32c(bytes), content: blake3::hash(bytes) }
    }

    /// Digests a vector that is stored as `bytes`; its content hash depends only on its values.
    pub(crate) fn of_vector(bytes: &[u8], numbers: &[f32]) -> Self {
        Self { content: vector_content(numbers), ..Self::new(bytes) }
    }
}

/// Hashes a vector as little-endian `f32` values, so that every file format gives the same hash.
pub(crate) fn vector_content(numbers: &[f32]) -> blake3::Hash {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    blake3::hash(&bytes)
}

impl ManifestBuilder {
    /// Starts a prepared dataset at `target`, with these classes in this order.
    ///
    /// # Errors
    /// If `target` already exists, or its parent folder cannot be written.
    pub fn new(target: &Path, classes: Vec<String>, encoding: Encoding) -> Result<Self, DataError> {
        if target.exists() {
            let problem = "this path already exists";
            return Err(DataError::content(target, problem).hint("choose another folder, or remove this one"));
        }
        let scratch = scratch_beside(target)?;
        // Scratch folders are private; a prepared dataset follows the user's umask.
        let folder = scratch.path().join("table");
        std::fs::create_dir(&folder).map_err(|error| DataError::new(parent_of(target), error))?;
        let open = |name: &str| {
            let path = folder.join(name);
            TableFile::create(&path).map_err(|error| DataError::new(path, error))
        };
        let (samples, parts, names) = (open("samples.bin")?, open("parts.bin")?, open("names.bin")?);
        let header = Header {
            version: VERSION,
            classes,
            subsets: Vec::new(),
            samples: 0,
            parts: 0,
            encoding,
            shrunk: None,
            sets: Vec::new(),
            starts: Vec::new(),
            groups: None,
            fingerprint: String::new(),
            tables: TableHashes::default(),
        };
        Ok(Self {
            _scratch: scratch,
            folder,
            target: target.to_owned(),
            header,
            content: Fingerprint::default(),
            samples,
            parts,
            names,
            name_bytes: 0,
            groups: None,
            drawn: None,
            weights: None,
            shrunk: None,
            unreadable: Vec::new(),
            warnings: Vec::new(),
        })
    }

    /// Sets the classes before the first sample, for a source that must read all its files to know them.
    pub(crate) fn set_classes(&mut self, classes: Vec<String>) {
        self.header.classes = classes;
    }

    /// Sets the widths of the sets of features that a vector consists of; none for one set.
    pub(crate) fn set_feature_sets(&mut self, sets: &[usize]) {
        self.header.sets = sets.iter().map(|&set| set as u32).collect();
    }

    /// Starts a subset, to which all following samples belong.
    pub fn subset(&mut self, name: &str) {
        self.header.subsets.push(Subset { name: name.to_owned(), first: self.header.samples, count: 0 });
    }

    /// Starts a subset, unless the current one has this name.
    pub(crate) fn continue_subset(&mut self, name: &str) {
        if self.header.subsets.last().is_none_or(|subset| subset.name != name) {
            self.subset(name);
        }
    }

    /// Adds a file of the source by its path relative to the source's root, with `/`.
    ///
    /// # Errors
    /// If the path could leave the root ([`check_part_path`]), or the table cannot be written.
    pub fn part(&mut self, path: &str, length: u64) -> Result<u32, DataError> {
        self.write_part(path, PartKind::Source, length)
    }

    /// Adds a file of the source whose first vector starts at `start`.
    pub(crate) fn vector_part(&mut self, path: &str, length: u64, start: u64) -> Result<u32, DataError> {
        self.header.starts.push(start);
        self.part(path, length)
    }

    /// Finishes an unpacked part of vectors. Returns its folder, where it can be read from now on.
    pub(crate) fn finish_vectors(&mut self, unpacked: Unpacked) -> Result<PathBuf, DataError> {
        self.header.starts.push(0);
        self.finish_part(unpacked)?;
        self.folder.canonicalize().map_err(|error| DataError::new(&self.folder, error))
    }

    /// Creates a file in the prepared folder, to be written and then [finished](Self::finish_part).
    pub fn unpack(&mut self, name: &str) -> Result<Unpacked, DataError> {
        let path = self.folder.join(name);
        let file = File::create_new(&path).map_err(|error| DataError::new(&path, error))?;
        Ok(Unpacked { part: self.header.parts, path, file: BufWriter::new(file), length: 0 })
    }

    /// Finishes an unpacked part. Parts are numbered in the order in which they are finished or added, so only one is
    /// unpacked at a time.
    pub fn finish_part(&mut self, mut unpacked: Unpacked) -> Result<(), DataError> {
        let flushed = unpacked.file.flush().and_then(|()| unpacked.file.get_ref().sync_all());
        flushed.map_err(|error| DataError::new(&unpacked.path, error))?;
        let name = unpacked.path.file_name().map(|name| name.to_string_lossy().into_owned());
        self.write_part(&name.unwrap_or_default(), PartKind::Unpacked, unpacked.length).map(|_| ())
    }

    /// Adds the next sample: `bytes` at `offset` in `part`.
    ///
    /// # Errors
    /// If the label is not a class, the sample is larger than [`MAX_SAMPLE_BYTES`], or the table cannot be written.
    pub fn sample(
        &mut self,
        part: u32,
        offset: u64,
        bytes: &[u8],
        label: Option<u32>,
    ) -> Result<(), DataError> {
        self.digested_sample(part, offset, &SampleDigest::new(bytes), label)
    }

    /// Adds the next sample as [`sample`](Self::sample) does, when its bytes are no longer in memory.
    pub(crate) fn digested_sample(
        &mut self,
        part: u32,
        offset: u64,
        digest: &SampleDigest,
        label: Option<u32>,
    ) -> Result<(), DataError> {
        let id = self.header.samples;
        let stray = label.filter(|&label| label as usize >= self.header.classes.len());
        if let Some(label) = stray {
            let classes = self.header.classes.len();
            let problem = format!("the label is {label}, but there are {classes} classes");
            return Err(DataError::content(&self.target, problem).at(format!("sample {id}")));
        }
        let length = u32::try_from(digest.length)
            .ok()
            .filter(|&length| length <= MAX_SAMPLE_BYTES)
            .ok_or_else(|| {
                let problem =
                    format!("the sample has {} bytes, expected at most {MAX_SAMPLE_BYTES}", digest.length);
                DataError::limit(&self.target, problem).at(format!("sample {id}"))
            })?;
        let label = label.unwrap_or(NO_LABEL);
        let record = SampleRecord { part, offset, length, checksum: digest.checksum, label };
        self.samples.write_all(&record.to_bytes()).map_err(|error| self.cannot_write(error))?;
        self.content.sample(&digest.content, label);
        self.header.samples += 1;
        if let Some(subset) = self.header.subsets.last_mut() {
            subset.count += 1;
        }
        Ok(())
    }

    /// Adds the next sample: the file `path` of the source, whose image was shrunk to a shorter side of `side` pixels and is
    /// [stored](crate::shrink) as `bytes`.
    ///
    /// # Errors
    /// As [`part`](Self::part) and [`sample`](Self::sample), and if the bytes cannot be written.
    pub(crate) fn shrunk_sample(
        &mut self,
        path: &str,
        length: u64,
        bytes: &[u8],
        side: u32,
        label: Option<u32>,
    ) -> Result<(), DataError> {
        let part = self.write_part(path, PartKind::Shrunk, length)?;
        let mut file = match self.shrunk.take() {
            Some(file) => file,
            None => self.unpack(SHRUNK_FILE)?,
        };
        let offset = file.length;
        file.write_all(bytes).map_err(|error| DataError::new(&file.path, error))?;
        self.shrunk = Some(file);
        let count = self.header.shrunk.map_or(0, |shrunk| shrunk.count) + 1;
        self.header.shrunk = Some(ShrunkImages { side, count });
        self.sample(part, offset, bytes, label)
    }

    /// Puts the last added sample into a named group; at most once per sample.
    pub fn set_group(&mut self, group: &str) -> Result<(), DataError> {
        let path = self.folder.join(GROUPS_FILE);
        let mut table = match self.groups.take() {
            Some(table) => table,
            None => GroupTable::create(&path).map_err(|error| DataError::new(&path, error))?,
        };
        let last = self.header.samples.saturating_sub(1);
        table.add(last, group).map_err(|error| DataError::new(path, error))?;
        self.groups = Some(table);
        Ok(())
    }

    /// Records how the label of the last added sample was drawn; at most once per sample.
    pub(crate) fn set_drawn(&mut self, drawn: Drawn) -> Result<(), DataError> {
        if drawn == Drawn::Given {
            return Ok(());
        }
        let path = self.folder.join(DRAWN_FILE);
        let mut table = match self.drawn.take() {
            Some(table) => table,
            None => DrawnTable::create(&path).map_err(|error| DataError::new(&path, error))?,
        };
        let last = self.header.samples.saturating_sub(1);
        table.add(last, drawn).map_err(|error| DataError::new(path, error))?;
        self.drawn = Some(table);
        Ok(())
    }

    /// Records the weight of the label of the last added sample; at most once per sample.
    pub(crate) fn set_weight(&mut self, weight: f64) -> Result<(), DataError> {
        #[expect(clippy::float_cmp, reason = "a weight that is not given is exactly 1")]
        if weight == 1.0 {
            return Ok(());
        }
        let path = self.folder.join(WEIGHTS_FILE);
        let mut table = match self.weights.take() {
            Some(table) => table,
            None => WeightTable::create(&path).map_err(|error| DataError::new(&path, error))?,
        };
        let last = self.header.samples.saturating_sub(1);
        table.add(last, weight).map_err(|error| DataError::new(path, error))?;
        self.weights = Some(table);
        Ok(())
    }

    /// Records a file that could not be read and was left out.
    pub fn unreadable(&mut self, error: DataError) {
        self.unreadable.push(error);
    }

    /// Records files and folders that are not part of the dataset.
    pub fn left_out(&mut self, errors: Vec<FormatError>) {
        self.unreadable.extend(errors.into_iter().map(DataError::from));
    }

    /// Records a probable mistake that only the source can detect.
    pub fn warn(&mut self, warning: DataWarning) {
        self.warnings.push(warning);
    }

    /// Finishes the dataset, or refuses one without samples; the first unreadable file, if any, is the hint.
    pub(crate) fn finish_unless_empty(
        self,
        root: &Path,
        problem: &str,
        hint: &str,
    ) -> Result<Prepared, DataError> {
        if self.header.samples > 0 {
            return self.finish();
        }
        Err(DataError::content(root, problem).hint(match self.unreadable.first() {
            Some(first) => format!("the first error is: {first}"),
            None => hint.to_owned(),
        }))
    }

    /// Writes all tables and moves the folder to its place atomically.
    ///
    /// # Errors
    /// If classes or subsets share a name, samples belong to no subset, a file cannot be written, or another
    /// process created `target` meanwhile.
    pub fn finish(mut self) -> Result<Prepared, DataError> {
        let target = &self.target;
        let finish = |table: &mut TableFile| table.finish().map_err(|error| DataError::new(target, error));
        self.header.tables = TableHashes {
            samples: finish(&mut self.samples)?,
            parts: finish(&mut self.parts)?,
            names: finish(&mut self.names)?,
            content: self.content.content(),
            groups: String::new(),
            drawn: String::new(),
            weights: String::new(),
        };
        if let Some(table) = &mut self.drawn {
            let hash = table.finish(self.header.samples);
            self.header.tables.drawn = hash.map_err(|error| DataError::new(target, error))?;
        }
        if let Some(table) = &mut self.weights {
            let hash = table.finish(self.header.samples);
            self.header.tables.weights = hash.map_err(|error| DataError::new(target, error))?;
        }
        if let Some(table) = &mut self.groups {
            let (groups, hash) =
                table.finish(self.header.samples).map_err(|error| DataError::new(target, error))?;
            self.header.groups = Some(groups);
            self.header.tables.groups = hash;
        }
        self.header.fingerprint = self.content.finish(&self.header);
        self.header.check().map_err(|problem| DataError::new(&self.target, problem))?;
        let header = serde_json::to_vec_pretty(&self.header)
            .map_err(|error| self.cannot_write(io::Error::other(error)))?;
        if let Some(Unpacked { file, path, .. }) = &mut self.shrunk {
            let flushed = file.flush().and_then(|()| file.get_ref().sync_all());
            flushed.map_err(|error| DataError::new(path, error))?;
        }
        let path = self.folder.join("manifest.json");
        let written = File::create_new(&path).and_then(|mut file| {
            file.write_all(&header)?;
            file.sync_all()
        });
        written.map_err(|error| DataError::new(&path, error))?;
        std::fs::rename(&self.folder, &self.target).map_err(|error| DataError::new(&self.target, error))?;
        Ok(Prepared { header: self.header, unreadable: self.unreadable, warnings: self.warnings })
    }

    fn write_part(&mut self, path: &str, kind: PartKind, length: u64) -> Result<u32, DataError> {
        check_part_path(path).map_err(|problem| DataError::new(&self.target, problem))?;
        let part = self.header.parts;
        self.header.parts = part.checked_add(1).ok_or_else(|| {
            DataError::limit(&self.target, format!("the dataset has more than {} files", u32::MAX))
        })?;
        let mut record = [0; 24];
        record[..8].copy_from_slice(&self.name_bytes.to_le_bytes());
        record[8..12].copy_from_slice(&(path.len() as u32).to_le_bytes());
        record[12..16].copy_from_slice(&(kind as u32).to_le_bytes());
        record[16..].copy_from_slice(&length.to_le_bytes());
        self.parts.write_all(&record).map_err(|error| self.cannot_write(error))?;
        self.names.write_all(path.as_bytes()).map_err(|error| self.cannot_write(error))?;
        self.name_bytes += path.len() as u64;
        Ok(part)
    }

    fn cannot_write(&self, error: io::Error) -> DataError {
        DataError::new(&self.folder, error)
    }
}

impl Unpacked {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Write for Unpacked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
