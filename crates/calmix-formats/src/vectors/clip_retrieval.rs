//! The output folder of clip-retrieval: `img_emb/img_emb_*.npy` and `metadata/metadata_*.parquet`.

use std::path::Path;

use super::array_format::ArrayFormat;
use super::npy_file::NpyFile;
use super::options::VectorOptions;
use super::parquet::ParquetTable;
use super::place::VectorPlace;
use super::shape::VectorShape;
use super::vector_source::{VectorFile, VectorSource};
use crate::error::FormatError;
use crate::listing::contents;

const VECTORS: &str = "img_emb";
const METADATA: &str = "metadata";

/// Returns whether clip-retrieval wrote the folder.
pub(super) fn is_clip_folder(folder: &Path) -> bool {
    folder.join(VECTORS).is_dir()
}

/// Opens the arrays in order of their numbers, with the metadata of the same numbers.
pub(super) fn open(place: &VectorPlace, options: &VectorOptions) -> Result<VectorSource, FormatError> {
    let parts = numbered(place, VECTORS, ".npy")?;
    let folder = place.folder.join(VECTORS);
    let mut files = Vec::new();
    let mut arrays = Vec::new();
    let mut all = None;
    for (_, name) in &parts {
        let npy = NpyFile::open(place, name)?;
        let (mut shape, element_type) = npy.vectors()?;
        let file = npy.vector_file(name, shape.rows);
        if let Some((sum, first)) = all {
            let sum: VectorShape = sum;
            if (sum.views, sum.width, first) != (shape.views, shape.width, element_type) {
                return Err(FormatError::content(&file.path, format!(
                    "its vectors have {} × {} numbers of type {element_type:?}, those of {} have {} × {} of type {first:?}",
                    shape.views, shape.width, parts[0].1, sum.views, sum.width
                )).hint("compute all parts with one model"));
            }
            shape.rows += sum.rows;
        }
        arrays.push(npy.into_array(file.rows));
        files.push(file);
        all = Some((shape, element_type));
    }
    let Some((shape, element_type)) = all else {
        return Err(FormatError::content(folder, "there is no img_emb_*.npy in it"));
    };
    let metadata = metadata(place, options, &parts, &files)?;
    let format = ArrayFormat { arrays, element_type, numbers: shape.numbers(), labels: None, metadata };
    Ok(VectorSource::new(shape, files, Some(element_type), format))
}

/// Opens the ids and labels, if any: a file per array, with the same number of rows.
fn metadata(
    place: &VectorPlace,
    options: &VectorOptions,
    parts: &[(u64, String)],
    files: &[VectorFile],
) -> Result<Option<ParquetTable>, FormatError> {
    if !place.folder.join(METADATA).is_dir() {
        return Ok(None);
    }
    let tables = numbered(place, METADATA, ".parquet")?;
    let numbers = |parts: &[(u64, String)]| parts.iter().map(|(number, _)| *number).collect::<Vec<_>>();
    if numbers(&tables) != numbers(parts) {
        let problem = format!("{} files of metadata for {} files of vectors", tables.len(), parts.len());
        let error = FormatError::content(place.folder.join(METADATA), problem);
        return Err(error.hint("each img_emb_N.npy needs its metadata_N.parquet"));
    }
    let names: Vec<String> = tables.into_iter().map(|(_, name)| name).collect();
    let table = ParquetTable::open_metadata(place, &names, options)?;
    for (file, rows) in files.iter().zip(table.rows_of_files()) {
        if file.rows != rows {
            let problem = format!("{} vectors, but its metadata have {rows} rows", file.rows);
            return Err(FormatError::content(&file.path, problem).hint("run clip-retrieval again"));
        }
    }
    Ok(Some(table))
}

/// Lists the files `FOLDER_N` of a folder in order of their numbers.
fn numbered(place: &VectorPlace, folder: &str, extension: &str) -> Result<Vec<(u64, String)>, FormatError> {
    let files = contents(&place.folder, folder)?.files;
    let number = |name: &str| {
        let name = name.strip_prefix(folder)?.strip_prefix('_')?.strip_suffix(extension)?;
        name.parse::<u64>().ok()
    };
    let mut parts: Vec<(u64, String)> =
        files.iter().filter_map(|name| Some((number(name)?, format!("{folder}/{name}")))).collect();
    parts.sort();
    Ok(parts)
}
