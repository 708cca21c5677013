//! Vectors that users already have, one per sample, in the files in which other tools write them.
//!
//! | files | module |
//! |---|---|
//! | `.npy`, and a folder of clip-retrieval with its metadata | `npy_file`, `clip_retrieval` |
//! | `.npz`, stored or deflated | `npz` |
//! | safetensors | `safetensors_file` |
//! | Parquet: one file, or a folder of parts | `parquet` |
//! | CSV with a column for each number | `csv_table` |
//!
//! Each is a `VectorFormat` in `FORMATS`; a new format is one more. A [`VectorSource`] gives the same rows for all of them, in
//! blocks of bounded size: numbers as `f32`, checked to be finite, with the ids, labels and groups that the file itself has.
//! Pickles are refused: loading one can run any code.

mod array_data;
mod array_format;
mod array_labels;
mod clip_retrieval;
mod csv_table;
mod npy_file;
mod npz;
mod options;
mod parquet;
mod pickle;
mod place;
mod rows;
mod safetensors_file;
mod shape;
mod vector_format;
mod vector_source;

use std::path::Path;

pub use array_labels::{ArrayLabels, LabelStream};
use csv_table::Csv;
pub use csv_table::CsvLines;
use npy_file::Npy;
pub use npy_file::NpyFile;
use npz::Npz;
pub use options::VectorOptions;
use parquet::Parquet;
pub use parquet::ParquetTexts;
use pickle::Pickle;
pub use place::VectorPlace;
pub use rows::VectorBlock;
use safetensors_file::Safetensors;
pub use shape::{MOST_NUMBERS, too_long};
use vector_format::VectorFormat;
pub use vector_source::{VectorFile, VectorSource};

use crate::error::{FormatError, FormatProblem};

/// All formats. The first one that matches opens the file: first those with a mark in their first bytes, then those that only
/// the name tells.
const FORMATS: [&dyn VectorFormat; 6] = [&Npy, &Npz, &Parquet, &Pickle, &Safetensors, &Csv];

impl VectorSource {
    /// Opens a file of vectors, or a folder of them, and reads as much as it takes to know their number and size.
    ///
    /// # Errors
    /// If it is a pickle or of an unknown format, there is no column of vectors or more than one, or the files contradict
    /// themselves or each other.
    pub fn open(path: &Path, options: &VectorOptions) -> Result<Self, FormatError> {
        let place = VectorPlace::find(path)?;
        let Some(name) = &place.file else { return open_folder(&place, options) };
        let file = place.open(name)?;
        let mut start = [0; 16];
        let length = file.length().min(start.len() as u64) as usize;
        file.read(&mut start[..length], 0)?;
        let Some(format) = FORMATS.iter().find(|format| format.matches(&start[..length], &place)) else {
            let problem = FormatProblem::Format("it is not a file of vectors that calmix knows".to_owned());
            let mut names: Vec<String> = endings().map(|ending| format!(".{ending}")).collect();
            let last = names.pop().unwrap_or_default();
            let hint = format!("calmix reads {} and {last}", names.join(", "));
            return Err(FormatError::new(file.path(), problem).hint(hint));
        };
        format.open(&place, name, options)
    }

    /// Whether a file of this name usually holds vectors.
    pub fn is_named(path: &Path) -> bool {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        ending.is_some_and(|ending| endings().any(|known| known == ending))
    }
}

/// What the names of files of vectors end in, without the dot.
fn endings() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().filter_map(|format| format.ending())
}

/// Opens a folder of files that belong together.
fn open_folder(place: &VectorPlace, options: &VectorOptions) -> Result<VectorSource, FormatError> {
    if clip_retrieval::is_one(&place.folder) {
        return clip_retrieval::open(place, options);
    }
    let parts = parquet::parts(place)?;
    if parts.is_empty() {
        let problem = FormatProblem::Content("there are no vectors in it".into());
        let names: Vec<String> = endings().map(|ending| format!(".{ending}")).collect();
        let hint = format!(
            "name a file ({}), a folder of .parquet files, or a folder of clip-retrieval",
            names.join(", ")
        );
        return Err(FormatError::new(&place.folder, problem).hint(hint));
    }
    parquet::open(place, &parts, options)
}
