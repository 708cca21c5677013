//! Duplicate images: in two subsets they bias the test; under two labels, one label is wrong.

use crate::dataset::Dataset;
use crate::error::DataError;
use crate::prepare::DataWarning;

/// The largest dataset that is searched: 12 bytes per sample are held, so this many need 192 MiB.
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
///
/// Candidates are found by sorting (checksum, length, id); with some tens of thousands of samples a
/// 32-bit checksum has chance collisions, so candidates are read again and compared by their BLAKE3.
pub(super) fn find(dataset: &Dataset) -> Result<Vec<DataWarning>, DataError> {
    if dataset.len() > MAX_SAMPLES {
        return Ok(vec![DataWarning::DuplicatesNotSought { samples: dataset.len(), limit: MAX_SAMPLES }]);
    }
    let mut keys = Vec::with_capacity(dataset.len() as usize);
    for record in dataset.records(0..dataset.len()) {
        let (id, record) = record?;
        // Ids are below MAX_SAMPLES, so they fit the third word.
        keys.push([record.checksum, record.length, id as u32]);
    }
    keys.sort_unstable();
    let (mut subsets, mut labels) = (Duplicates::default(), Duplicates::default());
    let mut bytes = Vec::new();
    for alike in keys.chunk_by(|a, b| a[..2] == b[..2]).filter(|alike| alike.len() > 1) {
        let mut copies = Vec::with_capacity(alike.len());
        for &[_, _, id] in alike {
            let id = u64::from(id);
            dataset.bytes(id, &mut bytes)?;
            let subset = dataset.header().subsets.partition_point(|subset| subset.first <= id);
            copies.push((*blake3::hash(&bytes).as_bytes(), Copy { id, subset, label: dataset.label(id)? }));
        }
        // Stable: copies of one content stay in the order of their ids.
        copies.sort_by_key(|(hash, _)| *hash);
        for same in copies.chunk_by(|a, b| a.0 == b.0) {
            subsets.take_in(same.iter().map(|(_, copy)| (copy.id, copy.subset)));
            labels.take_in(same.iter().filter_map(|(_, copy)| copy.label.map(|label| (copy.id, label))));
        }
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
