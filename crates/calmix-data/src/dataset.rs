//! An open prepared dataset: reads the record, bytes and image of a sample id from any number of threads.
//!
//! Memory holds only the header and a few open files; everything else is read from disk on demand, so a billion samples need
//! as much memory as a thousand. Bytes are verified at every read: if they differ from the prepared ones, the result is an
//! error that names the part and the sample, never an image.

mod local_samples;
mod open_parts;
mod part_source;
mod parts;
mod records;
mod sample_groups;
mod table_files;

use std::ops::Range;
use std::path::{Path, PathBuf};

use calmix_core::samples::label_weight;
use calmix_formats::decode::DecodeLimits;
use calmix_formats::error::FormatProblem;
use calmix_formats::image::Image;
use calmix_formats::labels::drawn::Drawn;
use calmix_formats::read_at::{ReadAt, ReadFrom};

use part_source::PartSource;
use parts::PartTable;
pub use records::Records;
use table_files::{AGAIN, check_hash, open_drawn, open_groups, open_weights, read_header, wrong_length};

use crate::error::DataError;
use crate::manifest::{
    DatasetPart, Encoding, Header, MAX_SAMPLE_BYTES, NO_LABEL, SampleRecord, UNPACKED_VECTORS,
};
use crate::shrink::{self, decode_shrunk, shrunk};

/// A prepared dataset, open for reading.
#[derive(Debug)]
pub struct Dataset {
    header: Header,
    samples: ReadAt,
    parts: PartTable,
    /// The group of each sample; `None` if there are no groups.
    groups: Option<ReadAt>,
    /// How the label of each sample was drawn; `None` if it is not known of any.
    drawn: Option<ReadAt>,
    /// The weight of each label; `None` if all are 1.
    weights: Option<ReadAt>,
    /// Samples of remote shards that were copied to the local disk.
    kept: Option<LocalSamples>,
}

/// Samples of remote shards in one local file, in the order of their ids.
#[derive(Debug)]
struct LocalSamples {
    ids: Vec<u64>,
    /// The offset of each sample.
    starts: Vec<u64>,
    file: ReadAt,
}

impl LocalSamples {
    /// Returns the offset of a sample in the file.
    fn find(&self, id: u64) -> Option<(&ReadAt, u64)> {
        let index = self.ids.binary_search(&id).ok()?;
        Some((&self.file, *self.starts.get(index)?))
    }
}

impl Dataset {
    /// Opens the dataset that was prepared into the folder `prepared` from the files below `root`, or from the file `root`.
    /// The root may be a URL.
    ///
    /// # Errors
    /// If files are missing, a table differs from the prepared one, the header is inconsistent, or a part's path could leave
    /// the root.
    pub fn open(prepared: &Path, root: &Path) -> Result<Self, DataError> {
        let prepared = prepared.canonicalize().map_err(|error| DataError::new(prepared, error))?;
        let root = PartSource::find(root)?;
        let header = read_header(&prepared)?;
        let samples = ReadAt::open(&prepared, "samples.bin")?;
        match header.samples.checked_mul(SampleRecord::BYTES as u64) {
            Some(expected) if expected == samples.length() => {}
            expected => return Err(wrong_length(&samples, expected.unwrap_or(u64::MAX))),
        }
        check_hash(&samples, &header.tables.samples)?;
        let groups = open_groups(&prepared, &header)?;
        let drawn = open_drawn(&prepared, &header)?;
        let weights = open_weights(&prepared, &header)?;
        let parts = PartTable::open(prepared, root, &header)?;
        if !header.matches_fingerprint() {
            let problem = "its fingerprint does not match its classes, subsets and samples".to_owned();
            let path = parts.prepared().join("manifest.json");
            return Err(DataError::changed(path, problem).hint(AGAIN));
        }
        Ok(Self { header, samples, parts, groups, drawn, weights, kept: None })
    }

    /// Returns the prepared folder.
    pub fn folder(&self) -> &Path {
        self.parts.prepared()
    }

    /// Returns the header: everything but the records.
    pub fn header(&self) -> &Header {
        &self.header
    }

    pub fn len(&self) -> u64 {
        self.header.samples
    }

    pub fn is_empty(&self) -> bool {
        self.header.samples == 0
    }

    /// Returns the classes by name; a label is an index into them.
    pub fn classes(&self) -> &[String] {
        &self.header.classes
    }

    /// Returns the fingerprint of the dataset, in hexadecimal: the same content under the same names has the same
    /// fingerprint.
    pub fn fingerprint(&self) -> &str {
        &self.header.fingerprint
    }

    /// Returns the ids of a subset.
    ///
    /// # Errors
    /// If there is no subset of that name.
    pub fn subset(&self, name: &str) -> Result<Range<u64>, DataError> {
        let subset = self.header.subsets.iter().find(|subset| subset.name == name);
        let subset = subset.ok_or_else(|| {
            let known: Vec<&str> = self.header.subsets.iter().map(|subset| subset.name.as_str()).collect();
            let problem = format!("there is no subset `{name}`");
            DataError::content(self.folder(), problem).hint(format!("the subsets are: {}", known.join(", ")))
        })?;
        Ok(subset.first..subset.first + subset.count)
    }

    /// Returns the location of a sample.
    ///
    /// # Errors
    /// If there is no such sample, or its record cannot be read or contradicts the header.
    pub fn record(&self, id: u64) -> Result<SampleRecord, DataError> {
        if id >= self.header.samples {
            let problem = format!("there is no sample {id}; the dataset has {} samples", self.header.samples);
            return Err(DataError::content(self.samples.path(), problem));
        }
        let mut bytes = [0; SampleRecord::BYTES];
        self.read_records(id, &mut bytes)?;
        self.checked(id, SampleRecord::from_bytes(bytes))
    }

    /// Returns the class of a sample; `None` if it is unlabelled.
    pub fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
        Ok(self.record(id)?.class())
    }

    /// Returns the widths of the sets of features that a vector consists of; empty for one set.
    pub fn feature_sets(&self) -> Vec<usize> {
        self.header.sets.iter().map(|&set| set as usize).collect()
    }

    /// Returns whether it is known of any label how it was drawn.
    pub fn has_drawn(&self) -> bool {
        self.drawn.is_some()
    }

    /// Returns how the label of a sample was drawn.
    ///
    /// # Errors
    /// If there is no such sample, or the table cannot be read.
    pub fn drawn(&self, id: u64) -> Result<Drawn, DataError> {
        let Some(file) = &self.drawn else { return Ok(Drawn::Given) };
        let mut byte = [0];
        file.read(&mut byte, id)?;
        Drawn::from_byte(byte[0]).ok_or_else(|| {
            let problem = format!("{} stands for no draw", byte[0]);
            DataError::format(file.path(), problem).at(format!("sample {id}")).hint(AGAIN)
        })
    }

    /// Returns whether labels have weights in training.
    pub fn has_weights(&self) -> bool {
        self.weights.is_some()
    }

    /// Returns the weight of the label of a sample in training.
    ///
    /// # Errors
    /// If there is no such sample, or the table cannot be read.
    pub fn weight(&self, id: u64) -> Result<f64, DataError> {
        let Some(file) = &self.weights else { return Ok(1.0) };
        let mut bytes = [0; 8];
        file.read(&mut bytes, id.saturating_mul(8))?;
        let weight = f64::from_le_bytes(bytes);
        match label_weight::why_not(weight) {
            Some(problem) => {
                Err(DataError::format(file.path(), problem).at(format!("sample {id}")).hint(AGAIN))
            }
            None => Ok(weight),
        }
    }

    /// Returns an entry of the table of parts.
    ///
    /// # Errors
    /// If there is no such part, or its entry cannot be read.
    pub fn part(&self, index: u32) -> Result<DatasetPart, DataError> {
        self.parts.part(index)
    }

    /// Opens a part for reading from its beginning; a remote part is fetched unless it is in the cache.
    ///
    /// # Errors
    /// If it cannot be opened, or has another length than when it was prepared.
    pub(crate) fn part_reader(&self, index: u32) -> Result<ReadFrom, DataError> {
        Ok(ReadFrom::full(&self.parts.opened(index)?))
    }

    /// Returns the name of a sample for messages: its file, its index in its subset (`train[7]`) if a file holds many, or
    /// the file and row of a vector (`vectors.npy[7]`).
    pub fn sample_name(&self, id: u64) -> Result<String, DataError> {
        let record = self.record(id)?;
        let part = self.part(record.part)?;
        if let Encoding::Vectors { .. } = self.header.encoding {
            let start = self.header.starts.get(record.part as usize).copied().unwrap_or_default();
            let row = record.offset.saturating_sub(start) / u64::from(record.length.max(1));
            let file =
                part.path.strip_suffix(UNPACKED_VECTORS).filter(|_| part.unpacked).unwrap_or(&part.path);
            return Ok(format!("{file}[{row}]"));
        }
        // A shard has a header before its first image; a file may have extra bytes after its image.
        let is_own_file = self.header.encoding == Encoding::File && record.offset == 0;
        let is_whole = record.offset == 0 && u64::from(record.length) == part.length;
        if part.shrunk || (!part.unpacked && (is_own_file || is_whole)) {
            return Ok(part.path);
        }
        let subset = self
            .header
            .subsets
            .iter()
            .find(|subset| (subset.first..subset.first + subset.count).contains(&id));
        let named = subset.map(|subset| format!("{}[{}]", subset.name, id - subset.first));
        Ok(named.unwrap_or_else(|| format!("sample {id}")))
    }

    /// Reads the bytes of a sample into `bytes`, and verifies them.
    ///
    /// # Errors
    /// If they cannot be read, or are not the bytes that were prepared ([`FormatProblem::Changed`]).
    pub fn bytes(&self, id: u64, bytes: &mut Vec<u8>) -> Result<(), DataError> {
        self.bytes_of(id, self.record(id)?, bytes)
    }

    /// Appends the values of a sample to `numbers`: all its views, one after the other.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes), and if the dataset holds images.
    pub fn vector(&self, id: u64, numbers: &mut Vec<f32>) -> Result<(), DataError> {
        let Encoding::Vectors { element_type, .. } = self.header.encoding else {
            return Err(DataError::content(self.folder(), "the dataset holds images, not vectors"));
        };
        let mut bytes = Vec::new();
        self.bytes(id, &mut bytes)?;
        element_type.append(&bytes, numbers);
        Ok(())
    }

    /// Decodes a sample.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes), and if they are not an image.
    pub fn image(&self, id: u64) -> Result<Image, DataError> {
        let mut bytes = Vec::new();
        self.bytes(id, &mut bytes)?;
        self.decode(id, &bytes)
    }

    /// Decodes `bytes`, the bytes of sample `id`.
    pub fn decode(&self, id: u64, bytes: &[u8]) -> Result<Image, DataError> {
        self.decode_shrunk(id, bytes, 0)
    }

    /// Decodes a sample and [shrinks](shrink) it to a shorter side of `side` pixels if it is larger; 0 keeps the stored
    /// size.
    pub fn shrunk_image(&self, id: u64, side: u32) -> Result<Image, DataError> {
        let mut bytes = Vec::new();
        self.bytes(id, &mut bytes)?;
        self.decode_shrunk(id, &bytes, side)
    }

    fn decode_shrunk(&self, id: u64, bytes: &[u8], side: u32) -> Result<Image, DataError> {
        let image = match self.header.encoding {
            Encoding::Raw { width, height, layout } => layout.image(width, height, bytes).ok_or_else(|| {
                FormatProblem::Format(format!("{} bytes for {width}×{height} pixels", bytes.len()))
            }),
            Encoding::Vectors { .. } => {
                Err(FormatProblem::Content("the dataset holds vectors, not images".into()))
            }
            Encoding::File => {
                let stored = self.header.shrunk.and_then(|_| shrink::from_stored(bytes));
                let decode = || decode_shrunk(bytes, &DecodeLimits::default(), side);
                stored.map_or_else(|| decode().map_err(FormatProblem::from), |(image, _)| Ok(image))
            }
        };
        let image = image.map(|image| shrunk(image, side));
        image.map_err(|problem| match self.location(id) {
            Ok((path, location)) => DataError::new(path, problem).at(location),
            Err(error) => error,
        })
    }

    fn bytes_of(&self, id: u64, record: SampleRecord, bytes: &mut Vec<u8>) -> Result<(), DataError> {
        let part;
        let (file, offset) = if let Some(kept) = self.kept.as_ref().and_then(|kept| kept.find(id)) {
            kept
        } else {
            part = self.parts.opened(record.part)?;
            (&*part, record.offset)
        };
        let location = || format!("byte {offset}, sample {id}");
        let end = offset.checked_add(u64::from(record.length));
        if end.is_none_or(|end| end > file.length()) {
            let problem =
                format!("expected {} bytes here, but the file has {} in total", record.length, file.length());
            return Err(DataError::changed(file.path(), problem).at(location()).hint(AGAIN));
        }
        // Bounded by `checked` and by the actual length of the file.
        bytes.resize(record.length as usize, 0);
        file.read(bytes, offset).map_err(|error| error.at(location()))?;
        let checksum = crc32c::crc32c(bytes);
        if checksum != record.checksum {
            let problem = format!(
                "the content has changed: checksum {checksum:08x}, but it was {:08x} when prepared",
                record.checksum
            );
            return Err(DataError::changed(file.path(), problem).at(location()).hint(AGAIN));
        }
        Ok(())
    }

    /// Returns the path and location of a sample for an error.
    fn location(&self, id: u64) -> Result<(PathBuf, String), DataError> {
        let record = self.record(id)?;
        let part = self.parts.opened(record.part)?;
        Ok((part.path().to_owned(), format!("byte {}, sample {id}", record.offset)))
    }

    fn read_records(&self, first: u64, bytes: &mut [u8]) -> Result<(), DataError> {
        Ok(self.samples.read(bytes, first * SampleRecord::BYTES as u64)?)
    }

    fn checked(&self, id: u64, record: SampleRecord) -> Result<SampleRecord, DataError> {
        let Header { parts, classes, encoding, .. } = &self.header;
        let raw = encoding.sample_bytes().ok().flatten();
        let problem = if record.part >= *parts {
            format!("its part is {}, but there are {parts} parts", record.part)
        } else if record.label != NO_LABEL && record.label as usize >= classes.len() {
            format!("its label is {}, but there are {} classes", record.label, classes.len())
        } else if record.length > MAX_SAMPLE_BYTES || raw.is_some_and(|raw| raw != record.length) {
            format!("{} bytes, expected {}", record.length, raw.unwrap_or(MAX_SAMPLE_BYTES))
        } else {
            return Ok(record);
        };
        let error = DataError::format(self.samples.path(), problem);
        Err(error.at(format!("sample {id}")).hint(AGAIN))
    }
}
