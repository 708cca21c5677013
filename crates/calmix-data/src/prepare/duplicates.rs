//! Duplicate images: across subsets they bias the test; with different labels, one label is wrong.

use std::ops::Range;

use crate::data_warning::{DataWarning, MAX_EXAMPLES};
use crate::dataset::Dataset;
use crate::error::DataError;
use crate::manifest::{NO_LABEL, SampleRecord};

/// The largest dataset that is searched by default: at 16 bytes per sample, it needs 256 MiB.
pub(super) const MAX_SAMPLES: u64 = 1 << 24;

/// Warnings about content that occurs more than once.
#[derive(Debug, Default)]
struct Duplicates {
    contents: u64,
    examples: Vec<(u64, u64)>,
}

/// A sample that may have copies: 48 bytes in memory.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    hash: [u8; 32],
    id: u64,
    /// The label of its record, which may be `NO_LABEL`.
    label: u32,
    subset: u8,
}

/// Checksum and length, which samples with the same content share and which are known without reading them.
type Key = (u32, u32);

/// Finds content that occurs in two subsets or under two labels.
pub(super) fn find(dataset: &Dataset) -> Result<Vec<DataWarning>, DataError> {
    if dataset.len() > MAX_SAMPLES {
        return Ok(vec![DataWarning::DuplicatesNotSearched { samples: dataset.len(), limit: MAX_SAMPLES }]);
    }
    let mut subsets = Duplicates::default();
    let mut labels = Duplicates::default();
    for same in by_content(&read(dataset, samples_with_equal_keys(dataset)?)?) {
        subsets.add(same.iter().map(|copy| (copy.id, copy.subset)));
        let labelled = same.iter().filter(|copy| copy.label != NO_LABEL);
        labels.add(labelled.map(|copy| (copy.id, copy.label)));
    }
    let mut warnings = Vec::new();
    if subsets.contents > 0 {
        let (contents, examples) = subsets.finish(dataset)?;
        warnings.push(DataWarning::SameInTwoSubsets { contents, examples });
    }
    if labels.contents > 0 {
        let (contents, examples) = labels.finish(dataset)?;
        warnings.push(DataWarning::SameUnderTwoLabels { contents, examples });
    }
    Ok(warnings)
}

/// Finds the samples outside a range of ids whose content also occurs in the range, in ascending order.
///
/// It works for datasets of any size. Memory holds the keys of the range, and 56 bytes for each sample that shares one: it
/// grows with the range and the number of copies, not with the dataset.
pub fn copies_of(dataset: &Dataset, range: &Range<u64>) -> Result<Vec<u64>, DataError> {
    let mut keys: Vec<Key> = Vec::new();
    for record in dataset.records(range.clone()) {
        let (_, record) = record?;
        keys.push(key(record));
    }
    keys.sort_unstable();
    keys.dedup();
    let mut is_outside_too = vec![false; keys.len()];
    let mut candidates = Vec::new();
    for record in dataset.records(0..dataset.len()) {
        let (id, record) = record?;
        if !range.contains(&id)
            && let Ok(place) = keys.binary_search(&key(record))
        {
            is_outside_too[place] = true;
            candidates.push(id);
        }
    }
    for record in dataset.records(range.clone()) {
        let (id, record) = record?;
        if keys.binary_search(&key(record)).is_ok_and(|place| is_outside_too[place]) {
            candidates.push(id);
        }
    }
    candidates.sort_unstable();
    let mut copies = Vec::new();
    for same in by_content(&read(dataset, candidates)?) {
        if same.iter().any(|copy| range.contains(&copy.id)) {
            copies.extend(same.iter().map(|copy| copy.id).filter(|id| !range.contains(id)));
        }
    }
    copies.sort_unstable();
    Ok(copies)
}

/// Finds the samples whose key occurs more than once, in ascending order. Memory holds 16 bytes per sample, and 8 per
/// result.
fn samples_with_equal_keys(dataset: &Dataset) -> Result<Vec<u64>, DataError> {
    let mut keys = Vec::with_capacity(usize::try_from(dataset.len()).unwrap_or(0));
    for record in dataset.records(0..dataset.len()) {
        let (id, record) = record?;
        keys.push((key(record), id));
    }
    keys.sort_unstable();
    let alike = keys.chunk_by(|a, b| a.0 == b.0).filter(|alike| alike.len() > 1);
    let mut ids: Vec<u64> = alike.flatten().map(|&(_, id)| id).collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Reads samples and returns them with their BLAKE3, sorted by hash and then by id: among some tens of thousands of samples,
/// a 32-bit checksum has chance collisions.
///
/// Samples are read in the ascending order of `ids`, which is the order of their files, so each remote shard is fetched once
/// even if the cache holds few of them. All hashes are therefore kept until the last sample has been read: with the ids, 56
/// bytes per candidate, at most 896 MiB below `MAX_SAMPLES` if every sample has a copy.
fn read(dataset: &Dataset, ids: Vec<u64>) -> Result<Vec<Candidate>, DataError> {
    let subsets = &dataset.header().subsets;
    let mut candidates = Vec::with_capacity(ids.len());
    let mut bytes = Vec::new();
    for id in ids {
        dataset.bytes(id, &mut bytes)?;
        // There are at most `MAX_SUBSETS`.
        let subset = subsets.partition_point(|subset| subset.first <= id) as u8;
        let label = dataset.record(id)?.label;
        candidates.push(Candidate { hash: *blake3::hash(&bytes).as_bytes(), id, label, subset });
    }
    candidates.sort_unstable_by_key(|candidate| (candidate.hash, candidate.id));
    Ok(candidates)
}

/// Iterates over content that occurs more than once, each as its copies in the order of their ids.
fn by_content(candidates: &[Candidate]) -> impl Iterator<Item = &[Candidate]> {
    candidates.chunk_by(|a, b| a.hash == b.hash).filter(|same| same.len() > 1)
}

fn key(record: SampleRecord) -> Key {
    (record.checksum, record.length)
}

impl Duplicates {
    /// Counts content whose copies differ in their mark (subset or label).
    fn add<M: PartialEq>(&mut self, mut copies: impl Iterator<Item = (u64, M)>) {
        let Some((first, mark)) = copies.next() else { return };
        if let Some((other, _)) = copies.find(|(_, other)| *other != mark) {
            self.contents += 1;
            let place = self.examples.partition_point(|&example| example < (first, other));
            self.examples.insert(place, (first, other));
            self.examples.truncate(MAX_EXAMPLES);
        }
    }

    fn finish(self, dataset: &Dataset) -> Result<(u64, Vec<(String, String)>), DataError> {
        let named = |(a, b)| Ok((dataset.sample_name(a)?, dataset.sample_name(b)?));
        Ok((self.contents, self.examples.into_iter().map(named).collect::<Result<_, DataError>>()?))
    }
}
