//! Which images of another dataset a run was trained on: those with the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::loader::SampleIds;
use calmix_run::inspect;
use calmix_run::run::{Paths, RunFile};
use calmix_vectors::prepared_table::prepared;
use calmix_vectors::run_samples::read_split;
use calmix_vectors::splits::unlabelled;

use crate::trainer::TrainError;

/// Finds the samples among `ids` of `images` that the run in `folder` was trained on, with their labels or without. Images
/// that were shrunk are compared as they were shrunk, so both datasets have to be prepared alike.
///
/// # Errors
/// If the folder is not that of a run, or the table of its dataset is gone or damaged.
pub fn trained_images(folder: &Path, images: &Dataset, ids: &[u64]) -> Result<BTreeSet<u64>, TrainError> {
    let recipe = inspect::recipe(folder)?.recipe;
    let paths = Paths::new(folder);
    let trained = Dataset::open(&prepared(&recipe, &paths), Path::new(&recipe.dataset.path))?;
    let split = read_split(&paths.file(RunFile::Split)?, &trained)?;
    let unlabelled =
        if recipe.unlabelled() > 0 { unlabelled(&recipe, &split, &trained)? } else { SampleIds::default() };
    // The new images are few, the table of the run may be larger than memory.
    let mut by_digest: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    for &id in ids {
        let record = images.record(id)?;
        by_digest.entry((record.checksum, record.length)).or_default().push(id);
    }
    let unlabelled = (0..unlabelled.len()).filter_map(|position| unlabelled.id(position));
    let mut found = BTreeSet::new();
    for id in split.labelled().iter().copied().chain(unlabelled) {
        let record = trained.record(id)?;
        for &other in by_digest.get(&(record.checksum, record.length)).into_iter().flatten() {
            if !found.contains(&other) && has_same_bytes((&trained, id), (images, other))? {
                found.insert(other);
            }
        }
    }
    Ok(found)
}

/// Compares two samples of one length and one checksum. A checksum of 32 bits is shared by chance among some ten thousand
/// images of one size, so their bytes decide; where those of the run can no longer be read, the checksum does.
fn has_same_bytes(
    (trained, id): (&Dataset, u64),
    (images, other): (&Dataset, u64),
) -> Result<bool, DataError> {
    let mut before = Vec::new();
    if trained.bytes(id, &mut before).is_err() {
        return Ok(true);
    }
    let mut now = Vec::new();
    images.bytes(other, &mut now)?;
    Ok(before == now)
}
