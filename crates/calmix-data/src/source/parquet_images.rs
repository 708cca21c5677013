//! Images in Parquet files, as Hugging Face's `datasets` writes them and the Hub stores them.
//!
//! One column holds the encoded images, as `struct<bytes: binary, path: string>` or plain binary; another holds their labels
//! as integers, where null and -1 mean unlabelled. A column `group` of text or integers names the [group](crate::groups) of
//! an image. Hugging Face's metadata, if any, name the classes.
//!
//! Pages are compressed, so images cannot be read in place. All images are copied unchanged into files of the prepared
//! folder, one for each Parquet file. Rows are read one at a time, so memory holds one page per column.
//!
//! All `*.parquet` below the root are read in name order. The split of a file is named by a word of its name, delimited by
//! `-`, `_` or `.`, or else by the innermost folder that names one (`train`, `val`, `test`, `unlabelled` and their variants,
//! `unsupervised`); the default is `train`.

use std::io::Write;
use std::path::{Path, PathBuf};

use calmix_formats::error::FormatError;
use calmix_formats::expansion;
use calmix_formats::labels::columns::LabelColumns;
use calmix_formats::listing::{below, contents, walk};
use calmix_formats::parquet_file::ParquetFile;
use calmix_formats::parquet_images::{FoundClasses, ImageColumns, ImageRows, has_image_column};

use super::image_files::check_image;
use super::layout::{SPLITS, TRAIN, UNLABELLED, split};
use super::{Check, Inspection};
use crate::error::DataError;
use crate::manifest::{Encoding, ManifestBuilder, Prepared};

/// Options for Parquet files.
#[derive(Debug, Clone, Default)]
pub struct ParquetOptions {
    /// The checks of images; by default only of the header, because such datasets usually have many images.
    pub inspection: Inspection,
    /// The columns of images (`path`) and labels; by default they are found by type and usual names.
    pub columns: LabelColumns,
}

/// A file of the source.
#[derive(Debug)]
struct NamedFile {
    subset: &'static str,
    name: String,
}

/// Prepares the files below `root` and writes the dataset, with all its images, to `target`.
///
/// # Errors
/// If a file is damaged or has no column of images, a row has no image or a label that is not a class, none of the images
/// can be decoded, or `target` cannot be written.
pub fn prepare(root: &Path, target: &Path, options: &ParquetOptions) -> Result<Prepared, DataError> {
    let mut left_out = Vec::new();
    let named = find_files(root, &mut left_out)?;
    let folder = root.canonicalize().map_err(|error| DataError::new(root, error))?;
    // Reading labels is fast, and a wrong one is better found before all images are copied.
    let mut found = FoundClasses::default();
    let mut files = Vec::new();
    for file in named {
        if found.add(&folder, &file.name, &options.columns, file.subset != UNLABELLED)? > 0 {
            files.push(file);
        }
    }
    if let Some(progress) = &options.inspection.progress {
        progress.expect(found.rows());
    }
    let mut builder = ManifestBuilder::new(target, found.finish()?, Encoding::File)?;
    builder.left_out(left_out);
    for (number, named) in files.iter().enumerate() {
        builder.continue_subset(named.subset);
        let file = ParquetFile::open(&folder, &named.name)?;
        pack(&file, named, number, &mut builder, options)?;
    }
    builder.finish_unless_empty(
        root,
        "none of the images in its .parquet files could be read",
        "the files have no rows",
    )
}

/// Copies the images of a file into a part of the prepared folder.
fn pack(
    file: &ParquetFile,
    named: &NamedFile,
    number: usize,
    builder: &mut ManifestBuilder,
    options: &ParquetOptions,
) -> Result<(), DataError> {
    let Inspection { limits, check, progress, .. } = &options.inspection;
    let columns = ImageColumns::find(file, &options.columns, named.subset != UNLABELLED)?;
    let mut rows = ImageRows::with_images(file, &columns);
    // Named by number: two names could differ only by a `/`, which a part name must not contain.
    let name = format!("images-{number:05}.bin");
    let mut packed = builder.unpack(&name)?;
    let mut offset = 0;
    while let Some(row) = rows.next_row()? {
        if let Some(progress) = progress {
            progress.add();
        }
        let place = format!("row {}", row.number);
        let Some(image) = row.image else { continue };
        let bytes = image.data();
        let length = bytes.len() as u64;
        if length > limits.bytes {
            let problem = format!("the image has {length} bytes, expected at most {}", limits.bytes);
            builder.unreadable(DataError::limit(&file.path, problem).at(place));
            continue;
        }
        if let Err(error) = check_image(bytes, limits, check.unwrap_or(Check::Header)) {
            builder.unreadable(DataError::from(error).in_file(&file.path).at(place));
            continue;
        }
        // Rows that share a dictionary image take hardly any bytes in the file, but each takes its own space on disk.
        if !expansion::is_plausible(file.length(), offset + length) {
            let problem =
                format!("{} bytes that expand to more than {offset}: probably an attack", file.length());
            return Err(DataError::limit(&file.path, problem).at(place));
        }
        packed.write_all(bytes).map_err(|error| DataError::new(packed.path(), error))?;
        builder.sample(packed.part, offset, bytes, row.label)?;
        if let Some(group) = &row.group {
            builder.set_group(group)?;
        }
        offset += length;
    }
    builder.finish_part(packed)
}

/// Finds the Parquet files below `root`, in the order of their splits.
fn find_files(root: &Path, left_out: &mut Vec<FormatError>) -> Result<Vec<NamedFile>, DataError> {
    let mut files = Vec::new();
    walk(root, "", left_out, &mut |name| -> Result<(), DataError> {
        if is_named_parquet(name) {
            files.push(NamedFile { subset: subset_of(name), name: name.to_owned() });
        }
        Ok(())
    })?;
    if files.is_empty() {
        return Err(DataError::content(root, "there is no .parquet file in it")
            .hint("pass the folder that contains the .parquet files"));
    }
    // The sort is stable, so files keep their order within a split.
    files.sort_by_key(|file| SPLITS.iter().position(|(name, _)| *name == file.subset));
    Ok(files)
}

/// Returns the split of a file from its path below the root: by the file name, then by its folders from the innermost
/// outwards.
fn subset_of(name: &str) -> &'static str {
    let word = |word: &str| match split(word) {
        None if word.eq_ignore_ascii_case("unsupervised") => Some(UNLABELLED),
        found => found,
    };
    name.rsplit('/').find_map(|part| part.split(['-', '_', '.']).find_map(word)).unwrap_or(TRAIN)
}

fn is_named_parquet(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet"))
}

/// Returns whether a folder, or a subfolder such as `data`, has Parquet files of which the first has a column of images.
pub fn has_images(root: &Path) -> bool {
    first_file(root).is_some_and(|(folder, name)| {
        ParquetFile::open(&folder, &name).is_ok_and(|file| has_image_column(&file))
    })
}

fn first_file(root: &Path) -> Option<(PathBuf, String)> {
    let root = root.canonicalize().ok()?;
    let top = contents(&root, "").ok()?;
    let first = |folder: &str, files: Vec<String>| {
        files.into_iter().find(|name| is_named_parquet(name)).map(|name| below(folder, &name))
    };
    let in_folder = |folder: &String| first(folder, contents(&root, folder).ok()?.files);
    let name = first("", top.files).or_else(|| top.folders.iter().find_map(in_folder))?;
    Some((root, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_comes_from_the_file_name_first() {
        for (name, expected) in [
            ("train-00000-of-00005.parquet", "train"),
            ("data/validation-00000-of-00001.parquet", "val"),
            ("training_data/test-0.parquet", "test"),
            ("default/test/0000.parquet", "test"),
            ("data/unsupervised-00000-of-00001.parquet", "unlabelled"),
            ("unlabeled_1.parquet", "unlabelled"),
            ("latest.parquet", "train"),
        ] {
            assert_eq!(subset_of(name), expected, "{name}");
        }
    }
}
