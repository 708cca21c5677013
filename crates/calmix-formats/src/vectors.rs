//! Reads the user's own vectors, one or more per sample, from files of other tools.
//!
//! | files | module |
//! |---|---|
//! | `.npy`, and a folder of clip-retrieval with its metadata | `npy_file`, `clip_retrieval` |
//! | `.npz`, stored or deflated | `npz` |
//! | safetensors | `safetensors_file` |
//! | Parquet: one file, or a folder of parts | `parquet` |
//! | CSV with a column for each number | `csv_table` |
//!
//! Each has a row in `FORMATS`; a new format adds one. Several files with features of the same samples are one source (`joined`). A
//! [`VectorSource`] gives the same rows for all of them, in blocks of
//! bounded size: values as `f32`, checked to be finite, with the ids, labels and groups in the file itself. Pickles are
//! refused, because loading one can run any code.

mod array_data;
mod array_format;
mod array_labels;
mod clip_retrieval;
mod csv_table;
mod joined;
mod npy_file;
mod npz;
mod options;
mod parquet;
mod pickle;
mod place;
mod safetensors_file;
mod shape;
mod vector_source;

use std::path::Path;

pub use array_labels::{ArrayLabels, LabelStream};
pub use csv_table::CsvLines;
pub use npy_file::NpyFile;
pub use options::VectorOptions;
pub use parquet::ParquetTextColumn;
pub(crate) use parquet::parts as parquet_parts;
pub use place::VectorPlace;
pub use shape::{MAX_ROW_VALUES, too_long};
pub use vector_source::{VectorBlock, VectorFile, VectorSource};

use crate::error::FormatError;
use crate::npy::is_npy;

/// A format of vector files.
struct VectorFormat {
    /// The usual extension of its files, without the dot; `None` for a refused format.
    extension: Option<&'static str>,
    /// Returns whether a file has this format, from its first 16 bytes (fewer if it is shorter) and its name.
    matches: fn(&[u8], &VectorPlace) -> bool,
    /// Opens the named file below the folder, and reads enough to know its size.
    open: fn(&VectorPlace, &str, &VectorOptions) -> Result<VectorSource, FormatError>,
}

/// All formats. The first one that matches opens the file: formats with a signature come before those that are recognised by
/// name only.
const FORMATS: [VectorFormat; 6] = [
    VectorFormat { extension: Some("npy"), matches: |start, _| is_npy(start), open: npy_file::open },
    VectorFormat { extension: Some("npz"), matches: |start, _| start.starts_with(b"PK"), open: npz::open },
    VectorFormat {
        extension: Some("parquet"),
        matches: |start, _| start.starts_with(b"PAR1"),
        open: |place, name, options| parquet::open(place, &[name.to_owned()], options),
    },
    VectorFormat { extension: None, matches: pickle::matches, open: pickle::refuse },
    VectorFormat {
        extension: Some("safetensors"),
        matches: |start, place| place.has_extension(&["safetensors"]) || start.get(8) == Some(&b'{'),
        open: safetensors_file::open,
    },
    VectorFormat {
        extension: Some("csv"),
        matches: |_, place| place.has_extension(&["csv"]),
        open: csv_table::open,
    },
];

impl VectorSource {
    /// Opens a file of vectors, or a folder of them, and reads enough to know their number and size.
    ///
    /// # Errors
    /// If it is a pickle or has an unknown format, there is not exactly one column of vectors, or the files are
    /// inconsistent.
    pub fn open(path: &Path, options: &VectorOptions) -> Result<Self, FormatError> {
        let place = VectorPlace::find(path)?;
        let Some(name) = &place.file else { return open_folder(&place, options) };
        let file = place.open(name)?;
        let mut start = [0; 16];
        let length = file.length().min(start.len() as u64) as usize;
        file.read(&mut start[..length], 0)?;
        let Some(format) = FORMATS.iter().find(|format| (format.matches)(&start[..length], &place)) else {
            let problem = "it is not a file of vectors that calmix knows";
            let mut names: Vec<String> = extensions().map(|extension| format!(".{extension}")).collect();
            let last = names.pop().unwrap_or_default();
            let hint = format!("calmix reads {} and {last}", names.join(", "));
            return Err(FormatError::format(file.path(), problem).hint(hint));
        };
        (format.open)(&place, name, options)
    }

    /// Returns whether a file with this name usually holds vectors.
    pub fn is_named(path: &Path) -> bool {
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        extension.is_some_and(|extension| extensions().any(|known| known == extension))
    }
}

/// Iterates over the extensions of vector files, without the dot.
fn extensions() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().filter_map(|format| format.extension)
}

/// Opens a folder of files that belong together.
fn open_folder(place: &VectorPlace, options: &VectorOptions) -> Result<VectorSource, FormatError> {
    if clip_retrieval::is_clip_folder(&place.folder) {
        return clip_retrieval::open(place, options);
    }
    let parts = parquet::parts(place)?;
    if parts.is_empty() {
        let names: Vec<String> = extensions().map(|extension| format!(".{extension}")).collect();
        let hint = format!(
            "name a file ({}), a folder of .parquet files, or a folder of clip-retrieval",
            names.join(", ")
        );
        return Err(FormatError::content(&place.folder, "there are no vectors in it").hint(hint));
    }
    parquet::open(place, &parts, options)
}
