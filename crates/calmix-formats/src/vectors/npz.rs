//! Reads `.npz`: a zip archive of `.npy` files, as `numpy.savez` and `numpy.savez_compressed` write it.
//!
//! The crate `zip` reads the directory. Arrays are read here, because the crate's readers borrow the archive.

use std::io::BufReader;
use std::sync::Arc;

use zip::{CompressionMethod, ZipArchive};

use super::array_data::{ArrayData, ZipEntry};
use super::array_format::{ArrayFormat, VectorArray};
use super::array_labels::{ArrayLabels, LABEL_NAMES};
use super::options::{VectorOptions, choose};
use super::pickle;
use super::place::VectorPlace;
use super::shape::VectorShape;
use super::vector_source::{VectorFile, VectorSource};
use crate::error::{FormatError, FormatProblem};
use crate::expansion::is_plausible_for_vectors;
use crate::npy::{NpyHeader, NpyType};
use crate::read_at::{ReadAt, ReadFrom};

/// The maximum number of arrays in an archive.
const MAX_ARRAYS: usize = 10_000;

struct NamedArray {
    name: String,
    header: NpyHeader,
    entry: ZipEntry,
}

/// Opens an archive with one array of vectors, and optionally one of labels.
pub(super) fn open(
    place: &VectorPlace,
    name: &str,
    options: &VectorOptions,
) -> Result<VectorSource, FormatError> {
    let file = Arc::new(place.open(name)?);
    let path = file.path().to_owned();
    let wrong = |problem: FormatProblem| FormatError::new(&path, problem);
    let mut arrays = arrays(&file)?;
    let is_vectors =
        |array: &NamedArray| matches!(array.header.item, NpyType::Float(_)) && array.header.shape.len() >= 2;
    let labels = LABEL_NAMES.iter().find_map(|name| arrays.iter().position(|array| array.name == *name));
    let labels = labels.map(|index| arrays.swap_remove(index));
    arrays.retain(is_vectors);
    // `swap_remove` changes the order.
    arrays.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
    let chosen = choose(&names, options.vector_column.as_deref(), "arrays").map_err(wrong)?;
    let NamedArray { header, entry, .. } = arrays.swap_remove(chosen);
    let shape = VectorShape::from_dimensions(&header.shape).map_err(wrong)?;
    let NpyType::Float(element_type) = header.item else {
        return Err(wrong(FormatProblem::Content("its numbers are not floating-point numbers".into())));
    };
    let labels = labels.map(|NamedArray { header, entry, .. }| {
        let data = ArrayData::Zipped { entry, header: header.start };
        ArrayLabels::new(&path, data, header.item, &header.shape, shape.rows)
    });
    let labels = labels.transpose()?;
    let files = vec![VectorFile::new(&file, name, shape.rows, 0)];
    let data = ArrayData::Zipped { entry, header: header.start };
    let arrays = vec![VectorArray { path, data, rows: shape.rows }];
    let format = ArrayFormat { arrays, element_type, numbers: shape.numbers(), labels, metadata: None };
    Ok(VectorSource::new(shape, files, None, format))
}

/// Reads the headers of the arrays in an archive; unreadable ones may be anything, such as pickled objects.
fn arrays(file: &Arc<ReadAt>) -> Result<Vec<NamedArray>, FormatError> {
    let path = file.path();
    let damaged = |error: zip::result::ZipError| {
        FormatError::format(path, format!("not a whole zip archive: {error}")).hint("write it again")
    };
    let directory = BufReader::new(ReadFrom::full(file));
    let mut archive = ZipArchive::new(directory).map_err(damaged)?;
    if archive.len() > MAX_ARRAYS {
        let problem = format!("{} arrays, expected at most {MAX_ARRAYS}", archive.len());
        return Err(FormatError::limit(path, problem));
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
            // Named this way without the crate's own decoder.
            CompressionMethod::DEFLATE => true,
            other => {
                let problem = format!("it is compressed by {other}");
                let error = FormatError::format(path, problem).at(format!("array {name}"));
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
                let error = FormatError::new(path, problem).at(format!("array {name}"));
                // Without its labels, it would be a different dataset.
                if LABEL_NAMES.contains(&name) {
                    return Err(error);
                }
                refused = Some(error);
            }
        }
    }
    // An unreadable array does not matter if another one can be read.
    match refused {
        Some(error) if arrays.is_empty() => Err(error),
        _ => Ok(arrays),
    }
}

/// Reads the header of an array and checks that its items fill the entry.
fn array(entry: ZipEntry) -> Result<(NpyHeader, ZipEntry), FormatProblem> {
    let end = entry.start.checked_add(entry.packed);
    if end.is_none_or(|end| end > entry.file.length()) {
        return Err(FormatProblem::Format("the archive ends before the array".into()));
    }
    if !is_plausible_for_vectors(entry.packed, entry.size) {
        let problem = format!("{} bytes that expand to {}: probably an attack", entry.packed, entry.size);
        return Err(FormatProblem::Limit(problem));
    }
    let header = NpyHeader::read(&mut entry.reader())?;
    if header.data_bytes().and_then(|bytes| bytes.checked_add(header.start)) != Some(entry.size) {
        return Err(FormatProblem::Format(format!(
            "{} bytes, but its header says another number",
            entry.size
        )));
    }
    Ok((header, entry))
}
