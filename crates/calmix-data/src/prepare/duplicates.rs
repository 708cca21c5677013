//! Duplicate images: in two subsets they bias the test; under two labels, one label is wrong.

use std::ops::Range;

use crate::dataset::Dataset;
use crate::error::DataError;
use crate::prepare::DataWarning;

/// The largest dataset that is searched unasked: 16 bytes per sample are held, so this many need 256 MiB.
pub(super) const MAX_SAMPLES: u64 = 1 << 24;

/// How many examples a warning carries.
pub(super) const EXAMPLES: usize = 5;

/// Content that occurs more than once in a way that matters.
#[derive(Debug, Default)]
struct Duplicates {
    contents: u64,
    examples: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Copy {
    id: u64,
    subset: usize,
    label: Option<u32>,
}

/// Finds content that occurs in two subsets or under two labels.
pub(super) fn find(dataset: &Dataset) -> Result<Vec<DataWarning>, DataError> {
    if dataset.len() > MAX_SAMPLES {
        return Ok(vec![DataWarning::DuplicatesNotSought { samples: dataset.len(), limit: MAX_SAMPLES }]);
    }
    let (mut subsets, mut labels) = (Duplicates::default(), Duplicates::default());
    for same in contents(dataset)? {
        subsets.take_in(same.iter().map(|copy| (copy.id, copy.subset)));
        labels.take_in(same.iter().filter_map(|copy| copy.label.map(|label| (copy.id, label))));
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

/// The samples outside of a range of ids whose content is also that of a sample in it, ascending. They are found in datasets of
/// any size.
///
/// # Errors
/// If a sample cannot be read.
pub fn copies_of(dataset: &Dataset, range: &Range<u64>) -> Result<Vec<u64>, DataError> {
    let mut copies = Vec::new();
    for same in contents(dataset)? {
        if same.iter().any(|copy| range.contains(&copy.id)) {
            copies.extend(same.iter().map(|copy| copy.id).filter(|id| !range.contains(id)));
        }
    }
    copies.sort_unstable();
    Ok(copies)
}

/// The contents that occur more than once, with their copies in the order of their ids.
///
/// Candidates are found by sorting (checksum, length, id); with some tens of thousands of samples a
/// 32-bit checksum has chance collisions, so candidates are read again and compared by their BLAKE3.
fn contents(dataset: &Dataset) -> Result<Vec<Vec<Copy>>, DataError> {
    let mut keys = Vec::with_capacity(usize::try_from(dataset.len()).unwrap_or(0));
    for record in dataset.records(0..dataset.len()) {
        let (id, record) = record?;
        keys.push((record.checksum, record.length, id));
    }
    keys.sort_unstable();
    let mut contents = Vec::new();
    let mut bytes = Vec::new();
    for alike in keys.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter(|alike| alike.len() > 1) {
        let mut copies = Vec::with_capacity(alike.len());
        for &(_, _, id) in alike {
            dataset.bytes(id, &mut bytes)?;
            let subset = dataset.header().subsets.partition_point(|subset| subset.first <= id);
            copies.push((*blake3::hash(&bytes).as_bytes(), Copy { id, subset, label: dataset.label(id)? }));
        }
        // Stable: copies of one content stay in the order of their ids.
        copies.sort_by_key(|(hash, _)| *hash);
        let same = copies.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1);
        contents.extend(same.map(|same| same.iter().map(|&(_, copy)| copy).collect()));
    }
    Ok(contents)
}

impl Duplicates {
    /// Counts a content whose copies differ in their mark (subset or label).
    fn take_in<M: PartialEq>(&mut self, mut copies: impl Iterator<Item = (u64, M)>) {
        let Some((first, mark)) = copies.next() else { return };
        if let Some((other, _)) = copies.find(|(_, other)| *other != mark) {
            self.contents += 1;
            let place = self.examples.partition_point(|&example| example < (first, other));
            self.examples.insert(place, (first, other));
            self.examples.truncate(EXAMPLES);
        }
    }

    fn finish(self, dataset: &Dataset) -> Result<(u64, Vec<(String, String)>), DataError> {
        let named = |(a, b)| Ok((dataset.sample_name(a)?, dataset.sample_name(b)?));
        Ok((self.contents, self.examples.into_iter().map(named).collect::<Result<_, DataError>>()?))
    }
}
