//! A list of samples given by path, as `calmix predict` writes them: the column `path` of a Parquet file, a folder of
//! Parquet files, or a CSV file.
//!
//! A path names a sample if it leads there from the dataset's folder, the current folder or the file system root; for a URL,
//! if it starts with that URL. An image in a tar is named by the path of the tar, a slash and the name of the member. The
//! table does not store member names, so the headers of the listed tars are read.
//!
//! Memory holds a hash per path of the list, and nothing of the dataset, which may be much larger.

mod path_candidates;
mod path_list;
mod sample_names;

use std::path::Path;

use calmix_formats::error::FormatProblem;

use path_candidates::PathCandidates;
use path_list::PathList;
use sample_names::SampleNames;

use crate::dataset::Dataset;
use crate::error::DataError;
use crate::manifest::Encoding;

/// Marks a path without a sample.
const NO_SAMPLE: u64 = u64::MAX;

/// The samples named by a list.
#[derive(Debug)]
pub struct SampleList {
    list: PathList,
    /// The ids in ascending order, each with the first row that names it.
    samples: Vec<(u64, u64)>,
}

/// A possible meaning of a path: the hash of a sample name.
#[derive(Debug, Clone, Copy)]
struct NamedRow {
    name: [u8; 16],
    row: u64,
    id: u64,
}

impl SampleList {
    /// Finds the samples of `dataset`, with its files below `root`, that are named by the list at `path`. A sample that is
    /// named twice occurs once.
    ///
    /// # Errors
    /// If the list cannot be read, is empty, names anything but samples of the dataset, or a path of it could be two of
    /// them; or if the samples of the dataset have no paths.
    pub fn read(path: &Path, dataset: &Dataset, root: &Path) -> Result<Self, DataError> {
        let mut names = SampleNames::new(dataset);
        names.find_tars()?;
        if dataset.header().encoding != Encoding::File || !names.are_unique() {
            let problem = "its samples have no paths of their own, which a list of samples needs";
            return Err(DataError::content(root, problem)
                .hint("a list can name the images of a folder or of WebDataset's shards (.tar)"));
        }
        let list = PathList::open(path)?;
        let candidates = PathCandidates::of(root)?;
        let mut named = Vec::new();
        list.visit(|row, text| {
            let of_row = candidates.names(text);
            if of_row.is_empty() {
                return Err(unknown(&list, row, text, &candidates, &names));
            }
            for name in of_row {
                names.mark_wanted(&name);
                named.push(NamedRow { name: hash(&name), row, id: NO_SAMPLE });
            }
            Ok(())
        })?;
        if named.is_empty() {
            return Err(DataError::content(path, "the list is empty").hint("select at least one row"));
        }
        named.sort_unstable_by_key(|named| named.name);
        names.visit(|id, name| {
            let name = hash(name);
            let first = named.partition_point(|named| named.name < name);
            let same = named.iter_mut().skip(first).take_while(|named| named.name == name);
            same.for_each(|named| named.id = id);
        })?;
        named.sort_unstable_by_key(|named| (named.row, named.id));
        let mut samples = Vec::with_capacity(named.len());
        for of_row in named.chunk_by(|a, b| a.row == b.row) {
            // A chunk is not empty. Meanings that are not samples sort last.
            let (Some(first), Some(last)) = (of_row.first(), of_row.last()) else { continue };
            if first.id == NO_SAMPLE {
                return Err(unknown(&list, first.row, &list.text(first.row)?, &candidates, &names));
            }
            if last.id != NO_SAMPLE && last.id != first.id {
                return Err(ambiguous(&list, first.row, &list.text(first.row)?, &candidates));
            }
            samples.push((first.id, first.row));
        }
        samples.sort_unstable();
        samples.dedup_by_key(|(id, _)| *id);
        Ok(Self { list, samples })
    }

    /// Returns the ids in ascending order, each with the first row that names it.
    pub fn samples(&self) -> &[(u64, u64)] {
        &self.samples
    }

    /// Returns the file or folder of the list.
    pub fn path(&self) -> &Path {
        self.list.path()
    }

    /// Returns the error for a row of the list.
    pub(crate) fn error(&self, row: u64, problem: FormatProblem) -> DataError {
        self.list.error(row, problem)
    }
}

/// Returns sixteen bytes of a hash, which do not collide by chance among billions of names.
fn hash(name: &str) -> [u8; 16] {
    let hash = blake3::hash(name.as_bytes());
    hash.as_bytes().first_chunk().copied().unwrap_or_default()
}

fn unknown(
    list: &PathList,
    row: u64,
    text: &str,
    candidates: &PathCandidates,
    names: &SampleNames<'_>,
) -> DataError {
    let root = candidates.root();
    let problem = format!("{text:?} is not a sample of the dataset {root}");
    let hint = match names.example() {
        Some(example) => format!(
            "name its images as `calmix predict` does, such as {root}/{example}, or from the dataset's folder, such as {example}"
        ),
        None => "name its images as `calmix predict` does".to_owned(),
    };
    list.error(row, FormatProblem::Content(problem)).hint(hint)
}

fn ambiguous(list: &PathList, row: u64, text: &str, candidates: &PathCandidates) -> DataError {
    let problem =
        format!("{text:?} could be two samples: from the current folder, or from the dataset's folder");
    let hint = format!("write the whole path, which begins with {}", candidates.root());
    list.error(row, FormatProblem::Content(problem)).hint(hint)
}
