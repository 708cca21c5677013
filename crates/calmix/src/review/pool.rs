//! The pool: all samples that may be labelled, with their names and what is known of their labels.

use std::path::Path;

use anyhow::Result;
use calmix_core::rng::{Domain, Seed};
use calmix_data::dataset::Dataset;
use calmix_data::manifest::Encoding;
use calmix_formats::labels::drawn::Drawn;
use calmix_formats::vectors::{VectorOptions, VectorSource};
use calmix_io::shown::shown;
use calmix_recipe::Data;

use crate::error::CliError;

/// The largest pool: the names of all samples are in memory.
const MAX_SAMPLES: u64 = 5_000_000;
/// The subsets whose labels are never changed by a review: they evaluate models.
const EVALUATED: [&str; 2] = ["val", "test"];

/// A sample that may be labelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolSample {
    pub(crate) id: u64,
    /// Its name in a list of labels: the path of an image, or the id of a vector.
    pub(crate) name: String,
    pub(crate) label: Option<u32>,
    pub(crate) drawn: Drawn,
}

impl PoolSample {
    /// Returns whether it has a label, or was shown and skipped.
    pub(crate) fn was_shown(&self) -> bool {
        self.label.is_some() || self.drawn == Drawn::Skipped
    }
}

/// All samples that may be labelled, by ascending id.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) classes: Vec<String>,
    pub(crate) samples: Vec<PoolSample>,
}

impl Pool {
    /// Lists the samples of a dataset, without those of its splits for evaluation.
    ///
    /// # Errors
    /// If the samples have no names by which a list could label them, or there are too many.
    pub(crate) fn of(dataset: &Dataset, data: &Data) -> Result<Self> {
        if dataset.len() > MAX_SAMPLES {
            let message = format!("{} has more than {MAX_SAMPLES} samples", shown(&data.path));
            return Err(CliError::invalid(message)
                .hint("review a part of them in a folder of its own")
                .into());
        }
        let ids = vector_ids(dataset, data)?;
        let mut samples = Vec::new();
        for subset in &dataset.header().subsets {
            if EVALUATED.contains(&subset.name.as_str()) {
                continue;
            }
            for record in dataset.records(subset.first..subset.first + subset.count) {
                let (id, record) = record?;
                let name = match &ids {
                    Some(ids) => ids.name(record.part, record.offset, record.length),
                    None => file_name(dataset, id, data)?,
                };
                samples.push(PoolSample { id, name, label: record.class(), drawn: dataset.drawn(id)? });
            }
        }
        Ok(Self { classes: dataset.classes().to_vec(), samples })
    }

    /// Returns the indices of all samples in a random order that depends on the seed and on their names alone: it stays the same
    /// when labels are added, and new samples are spread over it.
    pub(crate) fn order(&self, seed: u64) -> Vec<usize> {
        let key = |index: usize| {
            let name = blake3::hash(self.samples[index].name.as_bytes());
            let [a, b, c, d, e, f, g, h, ..] = *name.as_bytes();
            let name = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            Seed(seed).stream(Domain::PoolOrder, 0, name).next_u64()
        };
        let mut order: Vec<usize> = (0..self.samples.len()).collect();
        order.sort_by_cached_key(|&index| (key(index), self.samples[index].name.clone()));
        order
    }

    /// Returns the name of a class.
    pub(crate) fn class(&self, label: u32) -> &str {
        self.classes.get(label as usize).map_or("", String::as_str)
    }

    /// Returns the index of the sample with this id.
    pub(crate) fn index_of(&self, id: u64) -> Option<usize> {
        self.samples.binary_search_by_key(&id, |sample| sample.id).ok()
    }
}

/// Returns the path of a sample that is a file of its own.
fn file_name(dataset: &Dataset, id: u64, data: &Data) -> Result<String> {
    let record = dataset.record(id)?;
    let part = dataset.part(record.part)?;
    let is_own_file = part.shrunk || (!part.unpacked && record.offset == 0);
    if dataset.header().encoding == Encoding::File && is_own_file {
        return Ok(part.path);
    }
    let message = format!(
        "{}: its images are packed into larger files, so no list can name them to label them",
        shown(&data.path)
    );
    Err(CliError::invalid(message).hint("unpack the images into a folder and review that").into())
}

/// The ids of vectors, by file and row.
struct VectorIds {
    /// The number of the first row of each part, and the offset of its first vector.
    parts: Vec<(u64, u64)>,
    /// The ids by row; `None` if rows are named by their number.
    ids: Option<Vec<String>>,
}

impl VectorIds {
    fn name(&self, part: u32, offset: u64, length: u32) -> String {
        let (first, start) = self.parts.get(part as usize).copied().unwrap_or_default();
        let row = first + offset.saturating_sub(start) / u64::from(length.max(1));
        let id = self.ids.as_ref().and_then(|ids| ids.get(usize::try_from(row).ok()?)).cloned();
        id.unwrap_or_else(|| row.to_string())
    }
}

/// Reads the ids of a dataset of vectors; `None` if it holds images.
fn vector_ids(dataset: &Dataset, data: &Data) -> Result<Option<VectorIds>> {
    let Encoding::Vectors { .. } = dataset.header().encoding else { return Ok(None) };
    let vector_column = Some(data.vector_column.clone()).filter(|name| !name.is_empty());
    let options = VectorOptions { vector_column, ..VectorOptions::default() };
    let source = VectorSource::open(Path::new(&data.path), &options)?;
    let mut parts = Vec::new();
    let mut first = 0;
    let starts = dataset.header().starts.iter();
    for (file, start) in source.files().iter().filter(|file| file.rows > 0).zip(starts) {
        parts.push((first, *start));
        first += file.rows;
    }
    let mut ids = Vec::new();
    for block in source.blocks(0, BLOCK_ROWS) {
        let Some(of_block) = block?.ids else { return Ok(Some(VectorIds { parts, ids: None })) };
        ids.extend(of_block);
    }
    Ok(Some(VectorIds { parts, ids: Some(ids) }))
}

/// Rows of vectors that are read at once for their ids.
const BLOCK_ROWS: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(names: &[&str]) -> Pool {
        let sample = |(id, name): (u64, &&str)| PoolSample {
            id,
            name: (*name).to_owned(),
            label: None,
            drawn: Drawn::Given,
        };
        Pool { classes: Vec::new(), samples: (0..).zip(names).map(sample).collect() }
    }

    #[test]
    fn order_depends_on_names_alone() {
        let names: Vec<String> = (0..200).map(|n| format!("{n}.jpg")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let in_order = |pool: &Pool, seed: u64| -> Vec<String> {
            pool.order(seed).into_iter().map(|index| pool.samples[index].name.clone()).collect()
        };
        let all = in_order(&pool(&names), 0);
        let reversed: Vec<&str> = names.iter().rev().copied().collect();
        assert_eq!(in_order(&pool(&reversed), 0), all);
        assert_ne!(in_order(&pool(&names), 1), all);
        // Without some samples, the others keep their order.
        let half = in_order(&pool(&names[..100]), 0);
        let expected: Vec<&String> = all.iter().filter(|name| half.contains(name)).collect();
        assert_eq!(half.iter().collect::<Vec<_>>(), expected);
    }
}
