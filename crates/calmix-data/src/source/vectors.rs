//! A dataset of the user's own vectors.
//!
//! The vectors are in any file that [`vectors`](calmix_formats::vectors) reads. Their labels are in the same file or in a
//! separate one: a CSV, or a one-dimensional `.npy` of integers. Rows of `.npy`, safetensors and clip-retrieval stay in
//! place; those of other formats are unpacked once, as `f32`. The content of a sample is its values as `f32`, so the same
//! vectors and labels have the same fingerprint in every format.
//!
//! Labelled rows become the subset `train`, or the one in the CSV's column `split`; unlabelled rows become `unlabelled`.
//! Within a subset, rows keep the order of the file. The classes are all labels in ascending order: numeric order if all are
//! integers, otherwise byte order. A column `group` of the CSV of labels, or of the vectors' own file if the CSV has none,
//! names the [group](crate::groups) of a row; a column `drawn` of the list says how its label was
//! [drawn](calmix_formats::labels::drawn), a column `weight` its [weight](calmix_formats::labels::weight) in training.

mod column_stats;
mod label_lines;
pub mod label_list;
mod row_labels;

use std::io::Write;
use std::path::{Path, PathBuf};

use calmix_formats::element_type::ElementType;
use calmix_formats::error::FormatError;
use calmix_formats::labels::columns::LabelColumns;
use calmix_formats::labels::text::may_be_missing;
use calmix_formats::listing::walk;
use calmix_formats::read_at::ReadAt;
use calmix_formats::vectors::{VectorOptions, VectorPlace, VectorSource};

use self::column_stats::ColumnStats;
use self::label_list::{LabelList, SUBSETS};
use self::row_labels::RowLabels;
use crate::data_warning::DataWarning;
use crate::error::DataError;
use crate::manifest::{Encoding, ManifestBuilder, Prepared, SampleDigest, UNPACKED_VECTORS};
use crate::prepare_progress::PrepareProgress;

/// Bytes of vectors to read at once.
const CHUNK_BYTES: usize = 4 << 20;

/// Returns the paths of all sets of features: the root of the dataset, then further ones.
pub fn feature_paths(root: &Path, more: &[String]) -> Vec<PathBuf> {
    std::iter::once(root.to_owned()).chain(more.iter().map(PathBuf::from)).collect()
}

/// Prepares the vectors at `roots`, a file or a folder for each set of features, with their labels, and writes the dataset to
/// `target`.
///
/// # Errors
/// If vectors or labels cannot be read, contradict each other or are not finite, or `target` cannot be written.
pub fn prepare(
    roots: &[PathBuf],
    target: &Path,
    labels: Option<&Path>,
    options: &VectorOptions,
    progress: Option<&PrepareProgress>,
) -> Result<Prepared, DataError> {
    let source = open_sets(roots, labels.is_some(), options)?;
    let list = labels.map(|labels| LabelList::read(labels, &options.columns, source.rows())).transpose()?;
    let numbers = source.width() * source.views();
    let element_type = source.in_place().unwrap_or(ElementType::F32);
    let encoding =
        Encoding::Vectors { width: source.width() as u32, views: source.views() as u32, element_type };
    // The classes are known only after all labels have been read.
    let mut builder = ManifestBuilder::new(target, Vec::new(), encoding)?;
    builder.set_feature_sets(&source.sets());
    let mut rows = RowLabels::new(list);
    let mut stats = ColumnStats::default();
    let root = roots.first().map_or(Path::new(""), PathBuf::as_path);
    let mut parts = Parts::new(&source, root)?;
    if let Some(progress) = progress {
        // Once for the labels and the statistics of the vectors, once for the checksums.
        progress.expect_twice(source.rows());
    }
    for block in source.blocks(0, (CHUNK_BYTES / (4 * numbers)).max(1)) {
        let mut block = block?;
        parts.unpack(&mut builder, &block.vectors, numbers)?;
        stats.add(block.first, &block.vectors, numbers);
        rows.add(&source, &mut block, numbers)?;
        if let Some(progress) = progress {
            progress.add_rows((block.vectors.len() / numbers) as u64);
        }
    }
    let parts = parts.finish(&mut builder)?;
    let classes = rows.finish()?;
    for (class, name) in (0..).zip(&classes).filter(|(_, name)| may_be_missing(name)) {
        let samples = rows.count_of(class);
        builder.warn(DataWarning::MaybeMissing { name: name.clone(), samples });
    }
    builder.set_classes(classes);
    let row_bytes = numbers * element_type.bytes();
    for (subset, name) in SUBSETS.iter().enumerate() {
        if !rows.has(subset) {
            continue;
        }
        builder.subset(name);
        for (part, index) in parts.iter().zip(0..) {
            add_rows(&mut builder, part, index, subset, &rows, (element_type, row_bytes), progress)?;
        }
    }
    stats.warnings(&source, numbers).into_iter().for_each(|warning| builder.warn(warning));
    builder.finish()
}

/// Checks the text of a CSV of labels for `rows` vectors: everything but whether its ids exist. `path` is for messages.
///
/// # Errors
/// If [`prepare`] would refuse it.
pub fn check_list(path: &Path, text: &[u8], columns: &LabelColumns, rows: u64) -> Result<(), DataError> {
    LabelList::parse(path, text, columns, rows).map(drop)
}

/// Opens the sets of features at these paths as one source, each as [`open`] does.
///
/// # Errors
/// If a set cannot be opened, or the sets are not of the same samples.
pub fn open_sets(
    roots: &[PathBuf],
    has_list: bool,
    options: &VectorOptions,
) -> Result<VectorSource, FormatError> {
    let mut sets = Vec::with_capacity(roots.len());
    for root in roots {
        // The columns that the user named may be in the first set alone.
        sets.push(open(root, has_list || !sets.is_empty(), options)?);
    }
    VectorSource::join(sets)
}

/// Opens the vectors. If the labels are in a separate file, the columns that the user named belong to that file, and the
/// vectors use the same id column or one with a usual name.
///
/// # Errors
/// If the vectors cannot be opened.
pub fn open(root: &Path, has_list: bool, options: &VectorOptions) -> Result<VectorSource, FormatError> {
    if !has_list {
        return VectorSource::open(root, options);
    }
    let mut options = options.clone();
    options.columns.label = None;
    match VectorSource::open(root, &options) {
        Err(error) if options.columns.path.take().is_some() => {
            VectorSource::open(root, &options).map_err(|_| error)
        }
        opened => opened,
    }
}

/// Adds the rows of one part that belong to one subset.
fn add_rows(
    builder: &mut ManifestBuilder,
    part: &Part,
    index: u32,
    subset: usize,
    rows: &RowLabels,
    (element_type, row_bytes): (ElementType, usize),
    progress: Option<&PrepareProgress>,
) -> Result<(), DataError> {
    let at_once = (CHUNK_BYTES / row_bytes).max(1) as u64;
    let mut bytes = Vec::new();
    let mut numbers = Vec::new();
    for first in (0..part.rows).step_by(at_once as usize) {
        let count = at_once.min(part.rows - first);
        let wanted = |row: &u64| rows.subset(part.first + row) == subset;
        if !(first..first + count).any(|row| wanted(&row)) {
            continue;
        }
        bytes.resize(count as usize * row_bytes, 0);
        let start = part.start + first * row_bytes as u64;
        part.file.read(&mut bytes, start)?;
        for (row, stored) in (first..).zip(bytes.chunks_exact(row_bytes)).filter(|(row, _)| wanted(row)) {
            numbers.clear();
            element_type.append(stored, &mut numbers);
            let offset = part.start + row * row_bytes as u64;
            let digest = SampleDigest::of_vector(stored, &numbers);
            builder.digested_sample(index, offset, &digest, rows.class(part.first + row))?;
            if let Some(group) = rows.group(part.first + row) {
                builder.set_group(&group)?;
            }
            builder.set_drawn(rows.drawn(part.first + row))?;
            builder.set_weight(rows.weight(part.first + row))?;
            if let Some(progress) = progress {
                progress.add_rows(1);
            }
        }
    }
    Ok(())
}

/// A file whose rows can be read in place.
struct Part {
    file: ReadAt,
    /// The number of its first row in the source.
    first: u64,
    rows: u64,
    /// The offset of its first row.
    start: u64,
}

/// The files of a source, in place or unpacked one after the other.
struct Parts<'a> {
    source: &'a VectorSource,
    root: PathBuf,
    is_in_place: bool,
    /// The file being unpacked, its name, and the number of rows still to unpack.
    open: Option<(crate::manifest::Unpacked, String, u64)>,
    next: usize,
    folder: PathBuf,
    unpacked: Vec<String>,
}

impl<'a> Parts<'a> {
    fn new(source: &'a VectorSource, root: &Path) -> Result<Self, DataError> {
        let root = VectorPlace::find(root)?.folder;
        let is_in_place = source.in_place().is_some();
        Ok(Self {
            source,
            root,
            is_in_place,
            open: None,
            next: 0,
            folder: PathBuf::new(),
            unpacked: Vec::new(),
        })
    }

    /// Writes the next rows, unless they are in place.
    fn unpack(
        &mut self,
        builder: &mut ManifestBuilder,
        vectors: &[f32],
        numbers: usize,
    ) -> Result<(), DataError> {
        let mut rest = vectors;
        while !self.is_in_place && !rest.is_empty() {
            let Some((unpacked, name, left)) = &mut self.open else {
                let Some(file) = self.source.files().get(self.next) else { break };
                if file.rows == 0 {
                    self.next += 1;
                    continue;
                }
                // Parts of a folder have different names; a name with several levels would need folders.
                let name = file.relative.replace('/', "_") + UNPACKED_VECTORS;
                self.open = Some((builder.unpack(&name)?, name, file.rows));
                self.next += 1;
                continue;
            };
            let rows = (rest.len() / numbers).min(usize::try_from(*left).unwrap_or(usize::MAX));
            let (now, after) = rest.split_at(rows * numbers);
            let bytes: Vec<u8> = now.iter().flat_map(|number| number.to_le_bytes()).collect();
            unpacked.write_all(&bytes).map_err(|error| DataError::new(&*name, error))?;
            *left -= rows as u64;
            rest = after;
            if *left == 0 {
                self.close(builder)?;
            }
        }
        Ok(())
    }

    fn close(&mut self, builder: &mut ManifestBuilder) -> Result<(), DataError> {
        if let Some((unpacked, name, _)) = self.open.take() {
            self.folder = builder.finish_vectors(unpacked)?;
            self.unpacked.push(name);
        }
        Ok(())
    }

    /// Opens all files for reading in place, in the order of their numbers in the table.
    fn finish(mut self, builder: &mut ManifestBuilder) -> Result<Vec<Part>, DataError> {
        self.close(builder)?;
        let mut parts = Vec::new();
        let mut first = 0;
        // Empty files do not become parts.
        let files = self.source.files().iter().filter(|file| file.rows > 0);
        let mut names = self.unpacked.iter();
        for file in files {
            let open = if self.is_in_place {
                builder.vector_part(&file.relative, file.length, file.start)?;
                ReadAt::open(&self.root, &file.relative)?
            } else {
                ReadAt::open(&self.folder, names.next().map_or("", String::as_str))?
            };
            parts.push(Part { file: open, first, rows: file.rows, start: file.start });
            first += file.rows;
        }
        Ok(parts)
    }
}

/// Visits the files of vectors, and the file of their labels.
pub(super) fn for_each_file(
    root: &Path,
    more: &[String],
    labels: Option<&str>,
    visit: &mut dyn FnMut(&str) -> Result<(), DataError>,
) -> Result<(), DataError> {
    for_each_vector_file(&VectorPlace::find(root)?, visit)?;
    for path in more {
        let place = VectorPlace::find(Path::new(path))?;
        for_each_vector_file(&place, &mut |name| visit(&absolute(&place.folder.join(name))?))?;
    }
    let Some(labels) = labels else { return Ok(()) };
    visit(&absolute(Path::new(labels))?)
}

/// Visits the files of a set of features, relative to its folder.
fn for_each_vector_file(
    place: &VectorPlace,
    visit: &mut dyn FnMut(&str) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let Some(name) = &place.file else {
        return walk(&place.folder, "", &mut Vec::new(), &mut |name| {
            let extension = Path::new(name).extension();
            if extension.is_some_and(|extension| extension == "npy" || extension == "parquet") {
                visit(name)
            } else {
                Ok(())
            }
        });
    };
    visit(name)
}

fn absolute(path: &Path) -> Result<String, DataError> {
    let absolute = std::path::absolute(path).map_err(|error| DataError::new(path, error))?;
    let text = absolute.to_str().map(str::to_owned);
    text.ok_or_else(|| DataError::content(path, "its path is not UTF-8").hint("rename it"))
}

/// Returns whether a folder holds vectors, by its file names: clip-retrieval, or Parquet parts.
pub fn has_vectors(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_part =
        |path: PathBuf| path.extension().is_some_and(|extension| extension == "parquet") && path.is_file();
    folder.join("img_emb").is_dir() || entries.map(|entry| entry.path()).any(is_part)
}
