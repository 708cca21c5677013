//! A `.npy` file: an array of vectors or labels.

use std::path::PathBuf;
use std::sync::Arc;

use super::array_data::ArrayData;
use super::array_format::{ArrayFormat, VectorArray};
use super::array_labels::ArrayLabels;
use super::options::VectorOptions;
use super::place::VectorPlace;
use super::shape::VectorShape;
use super::vector_source::{VectorFile, VectorSource};
use crate::element_type::ElementType;
use crate::error::{FormatError, FormatProblem};
use crate::npy::{NpyHeader, NpyType};
use crate::read_at::{ReadAt, ReadFrom};

/// A file with its header read and its length checked.
#[derive(Debug)]
pub struct NpyFile {
    path: PathBuf,
    file: Arc<ReadAt>,
    header: NpyHeader,
}

/// Opens a file with one array of vectors.
pub(super) fn open(place: &VectorPlace, name: &str, _: &VectorOptions) -> Result<VectorSource, FormatError> {
    let npy = NpyFile::open(place, name)?;
    let (shape, element_type) = npy.vectors()?;
    let file = npy.vector_file(name, shape.rows);
    let arrays = vec![npy.into_array(shape.rows)];
    let format = ArrayFormat { arrays, element_type, numbers: shape.numbers(), labels: None, metadata: None };
    Ok(VectorSource::new(shape, vec![file], Some(element_type), format))
}

impl NpyFile {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// If it cannot be read, or its length contradicts its header.
    pub fn open(place: &VectorPlace, name: &str) -> Result<Self, FormatError> {
        let file = Arc::new(place.open(name)?);
        let path = file.path().to_owned();
        let header = NpyHeader::read(&mut ReadFrom::full(&file))
            .map_err(|problem| FormatError::new(&path, problem))?;
        let expected = header.data_bytes().and_then(|bytes| bytes.checked_add(header.start));
        if expected != Some(file.length()) {
            let shape = header.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ");
            let problem = format!(
                "{} bytes, but its header says {shape} items of {} bytes",
                file.length(),
                header.item.bytes()
            );
            return Err(FormatError::format(&path, problem).hint("write it again"));
        }
        Ok(Self { path, file, header })
    }

    /// Returns the shape and element type of an array of vectors.
    pub(super) fn vectors(&self) -> Result<(VectorShape, ElementType), FormatError> {
        let wrong = |problem| FormatError::new(&self.path, problem);
        let NpyType::Float(element_type) = self.header.item else {
            let problem = FormatProblem::Content("its numbers are not floating-point numbers".into());
            return Err(wrong(problem).hint("save `.astype('float32')` of the array"));
        };
        Ok((VectorShape::from_dimensions(&self.header.shape).map_err(wrong)?, element_type))
    }

    pub(super) fn vector_file(&self, name: &str, rows: u64) -> VectorFile {
        VectorFile::new(&self.file, name, rows, self.header.start)
    }

    pub(super) fn into_array(self, rows: u64) -> VectorArray {
        VectorArray { data: self.data(), path: self.path, rows }
    }

    /// Returns an array of labels, one for each of `rows` rows.
    pub fn labels(&self, rows: u64) -> Result<ArrayLabels, FormatError> {
        ArrayLabels::new(&self.path, self.data(), self.header.item, &self.header.shape, rows)
    }

    fn data(&self) -> ArrayData {
        let file = Arc::clone(&self.file);
        let end = file.length();
        ArrayData::InFile { file, start: self.header.start, end }
    }
}
