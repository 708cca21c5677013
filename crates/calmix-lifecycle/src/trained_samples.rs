//! The samples of another dataset that a run was trained on: images with the same bytes, vectors with the same numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::loader::SampleIds;
use calmix_data::manifest::Encoding;
use calmix_run::read::inspect;
use calmix_run::run::{Paths, RunFile};

use crate::error::LifecycleError;
use crate::prepared_dataset::prepared_folder;
use crate::run_samples::read_split;
use crate::splits::unlabelled;

/// Finds the samples among `ids` of `samples` that the run in `folder` was trained on, with or without their labels. Images are
/// compared after shrinking, so both datasets must be prepared with the same limit.
pub fn trained_samples(
    folder: &Path,
    samples: &Dataset,
    ids: &[u64],
) -> Result<BTreeSet<u64>, LifecycleError> {
    let recipe = inspect::recipe(folder)?.recipe;
    let paths = Paths::new(folder);
    let trained = Dataset::open(&prepared_folder(&recipe, &paths), Path::new(&recipe.dataset.path))?;
    let split = read_split(&paths.file(RunFile::Split)?, &trained)?;
    let unlabelled =
        if recipe.unlabelled() > 0 { unlabelled(&recipe, &split, &trained)? } else { SampleIds::default() };
    let unlabelled = (0..unlabelled.len()).filter_map(|position| unlabelled.id(position));
    let trained_ids = split.labelled().iter().copied().chain(unlabelled);
    let encoding = trained.header().encoding;
    let is_other_encoding = encoding != samples.header().encoding;
    Ok(match encoding {
        Encoding::Vectors { .. } if is_other_encoding => {
            same_numbers((&trained, trained_ids), (samples, ids))?
        }
        _ => same_bytes((&trained, trained_ids), (samples, ids))?,
    })
}

/// Finds the samples with the same bytes as a training sample.
fn same_bytes(
    (trained, trained_ids): (&Dataset, impl Iterator<Item = u64>),
    (samples, ids): (&Dataset, &[u64]),
) -> Result<BTreeSet<u64>, DataError> {
    // Index the new samples, which are few; those of the run may not fit into memory.
    let mut by_digest: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    for &id in ids {
        let record = samples.record(id)?;
        by_digest.entry((record.checksum, record.length)).or_default().push(id);
    }
    let mut found = BTreeSet::new();
    for id in trained_ids {
        let record = trained.record(id)?;
        for &other in by_digest.get(&(record.checksum, record.length)).into_iter().flatten() {
            if !found.contains(&other) && has_same_bytes((trained, id), (samples, other))? {
                found.insert(other);
            }
        }
    }
    Ok(found)
}

/// Compares two samples with equal length and checksum. With 32 bits, some ten thousand samples of one size are enough for two to
/// share a checksum by chance, so the bytes decide. If those of the run can no longer be read, the samples count as equal.
fn has_same_bytes(
    (trained, id): (&Dataset, u64),
    (samples, other): (&Dataset, u64),
) -> Result<bool, DataError> {
    let mut before = Vec::new();
    if trained.bytes(id, &mut before).is_err() {
        return Ok(true);
    }
    let mut now = Vec::new();
    samples.bytes(other, &mut now)?;
    Ok(before == now)
}

/// Finds the vectors with the same numbers as a training vector, if the files store them differently: as another type of number,
/// or with other views. Slower than [`same_bytes`], because it reads every vector of the run.
fn same_numbers(
    (trained, trained_ids): (&Dataset, impl Iterator<Item = u64>),
    (samples, ids): (&Dataset, &[u64]),
) -> Result<BTreeSet<u64>, DataError> {
    let mut by_hash: BTreeMap<[u8; 32], Vec<u64>> = BTreeMap::new();
    for &id in ids {
        by_hash.entry(vector_hash(samples, id)?).or_default().push(id);
    }
    let mut found = BTreeSet::new();
    for id in trained_ids {
        found.extend(by_hash.remove(&vector_hash(trained, id)?).unwrap_or_default());
    }
    Ok(found)
}

/// Computes the hash of a sample's first vector, as `f32`.
fn vector_hash(dataset: &Dataset, id: u64) -> Result<[u8; 32], DataError> {
    let mut numbers = Vec::new();
    dataset.vector(id, &mut numbers)?;
    if let Encoding::Vectors { width, .. } = dataset.header().encoding {
        numbers.truncate(width as usize);
    }
    let mut hasher = blake3::Hasher::new();
    for number in numbers {
        hasher.update(&number.to_le_bytes());
    }
    Ok(*hasher.finalize().as_bytes())
}
