//! `.npz`: a zip archive of `.npy` files, as `numpy.savez` and `numpy.savez_compressed` write it.
//!
//! The crate `zip` reads the directory. Arrays are read here, because a reader of that crate borrows its archive.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use flate2::Crc;
use flate2::read::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use super::array_format::{ArrayData, ArrayFormat, VectorArray};
use super::array_labels::{ArrayLabels, NAMES};
use super::chosen::choose;
use super::{VectorFile, VectorOptions, VectorPlace, VectorShape, VectorSource, is_plausible, pickle};
use crate::dataset::ReadAt;
use crate::error::{DataError, DataProblem};
use crate::npy::{NpyHeader, NpyItem};
use crate::read_from::ReadFrom;

/// The most arrays of an archive.
const MOST_ARRAYS: usize = 10_000;

/// A member of an archive.
#[derive(Debug, Clone)]
pub(super) struct ZipEntry {
    file: Arc<ReadAt>,
    start: u64,
    packed: u64,
    size: u64,
    deflated: bool,
    checksum: u32,
}

struct NamedArray {
    name: String,
    header: NpyHeader,
    entry: ZipEntry,
}

/// Opens an archive with one array of vectors, and possibly one of labels.
pub(super) fn open(
    place: &VectorPlace,
    name: &str,
    options: &VectorOptions,
) -> Result<VectorSource, DataError> {
    let file = Arc::new(place.open(name)?);
    let path = file.path().to_owned();
    let wrong = |problem: DataProblem| DataError::new(&path, problem);
    let mut arrays = arrays(&file)?;
    let is_vectors =
        |array: &NamedArray| matches!(array.header.item, NpyItem::Float(_)) && array.header.shape.len() >= 2;
    let labels = NAMES.iter().find_map(|name| arrays.iter().position(|array| array.name == *name));
    let labels = labels.map(|index| arrays.swap_remove(index));
    arrays.retain(is_vectors);
    // `swap_remove` changes the order.
    arrays.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
    let chosen = choose(&names, options.vector_column.as_deref(), "arrays").map_err(wrong)?;
    let NamedArray { header, entry, .. } = arrays.swap_remove(chosen);
    let shape = VectorShape::of_array(&header.shape).map_err(wrong)?;
    let NpyItem::Float(number) = header.item else {
        return Err(wrong(DataProblem::Content("its numbers are not floating-point numbers".into())));
    };
    let labels = labels.map(|NamedArray { header, entry, .. }| {
        let data = ArrayData::Zipped { entry, header: header.start };
        ArrayLabels::new(&path, data, header.item, &header.shape, shape.rows)
    });
    let labels = labels.transpose()?;
    let relative = name.to_owned();
    let files =
        vec![VectorFile { path: path.clone(), relative, length: file.length(), rows: shape.rows, start: 0 }];
    let data = ArrayData::Zipped { entry, header: header.start };
    let arrays = vec![VectorArray { path, data, rows: shape.rows }];
    let format = ArrayFormat { arrays, number, numbers: shape.numbers(), labels, metadata: None };
    Ok(VectorSource::new(shape, files, None, format))
}

/// The arrays of an archive whose headers can be read; others may be anything, such as pickled objects.
fn arrays(file: &Arc<ReadAt>) -> Result<Vec<NamedArray>, DataError> {
    let path = file.path();
    let damaged = |error: zip::result::ZipError| {
        DataError::new(path, DataProblem::Format(format!("not a whole zip archive: {error}")))
            .hint("write it again")
    };
    let directory = BufReader::new(ReadFrom::whole(file));
    let mut archive = ZipArchive::new(directory).map_err(damaged)?;
    if archive.len() > MOST_ARRAYS {
        let problem = format!("{} arrays, expected at most {MOST_ARRAYS}", archive.len());
        return Err(DataError::new(path, DataProblem::Limit(problem)));
    }
    let mut arrays = Vec::new();
    let mut refused = None;
    for index in 0..archive.len() {
        let member = archive.by_index_raw(index).map_err(damaged)?;
        let member_name = member.name().map_err(damaged)?.into_owned();
        if member_name.ends_with("data.pkl") {
            return Err(pickle::refused(path));
        }
        let Some(name) = member_name.strip_suffix(".npy") else { continue };
        let deflated = match member.compression() {
            CompressionMethod::Stored => false,
            // Named like this without the crate's own decoder.
            CompressionMethod::DEFLATE => true,
            other => {
                let problem = DataProblem::Format(format!("it is compressed by {other}"));
                let error = DataError::new(path, problem).at(format!("array {name}"));
                return Err(error.hint("write it with numpy.savez_compressed"));
            }
        };
        let entry = ZipEntry {
            file: Arc::clone(file),
            start: member.data_start().unwrap_or(u64::MAX),
            packed: member.compressed_size(),
            size: member.size(),
            deflated,
            checksum: member.crc32(),
        };
        match array(entry) {
            Ok((header, entry)) => arrays.push(NamedArray { name: name.to_owned(), header, entry }),
            Err(problem) => {
                let error = DataError::new(path, problem).at(format!("array {name}"));
                // Without its labels, the dataset would be another one.
                if NAMES.contains(&name) {
                    return Err(error);
                }
                refused = Some(error);
            }
        }
    }
    // An array that cannot be read does not matter beside one that can.
    match refused {
        Some(error) if arrays.is_empty() => Err(error),
        _ => Ok(arrays),
    }
}

/// Reads the header of an array and checks that its items fill the entry.
fn array(entry: ZipEntry) -> Result<(NpyHeader, ZipEntry), DataProblem> {
    let end = entry.start.checked_add(entry.packed);
    if end.is_none_or(|end| end > entry.file.length()) {
        return Err(DataProblem::Format("the archive ends before the array".into()));
    }
    if !is_plausible(entry.packed, entry.size) {
        let problem = format!("{} bytes that expand to {}: probably an attack", entry.packed, entry.size);
        return Err(DataProblem::Limit(problem));
    }
    let header = NpyHeader::read(&mut entry.reader())?;
    if header.data_bytes().and_then(|bytes| bytes.checked_add(header.start)) != Some(entry.size) {
        return Err(DataProblem::Format(format!("{} bytes, but its header says another number", entry.size)));
    }
    Ok((header, entry))
}

impl ZipEntry {
    /// Reads the member from its first byte; the end of it is checked when it is reached.
    pub(super) fn reader(&self) -> EntryReader {
        let packed = ReadFrom::new(&self.file, self.start, self.start.saturating_add(self.packed));
        let packed = BufReader::with_capacity(1 << 16, packed);
        let from: Box<dyn Read + Send> =
            if self.deflated { Box::new(DeflateDecoder::new(packed)) } else { Box::new(packed) };
        EntryReader { from, left: self.size, crc: Crc::new(), checksum: self.checksum }
    }
}

/// A member of an archive, which must have the length and the checksum that the directory says.
pub(super) struct EntryReader {
    from: Box<dyn Read + Send>,
    left: u64,
    crc: Crc,
    checksum: u32,
}

impl Read for EntryReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = self.left.min(into.len() as u64) as usize;
        if most == 0 {
            return Ok(0);
        }
        let count = self.from.read(&mut into[..most])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.crc.update(&into[..count]);
        self.left -= count as u64;
        if self.left == 0 {
            let damaged = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what));
            if self.from.read(&mut [0])? != 0 {
                return damaged("an array expands beyond its length");
            }
            if self.crc.sum() != self.checksum {
                return damaged("an array has another checksum than the archive says");
            }
        }
        Ok(count)
    }
}
