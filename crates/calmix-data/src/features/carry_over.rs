//! Takes over features from the cache of an earlier state of a dataset, so that labelling some images does not cost the features
//! of all.
//!
//! A cache belongs to the fingerprint of a dataset, which changes with every label and every image, and its samples are numbered
//! anew. The images themselves rarely change. Each cache therefore keeps a key of every sample: a hash of its path, place, length
//! and checksum. Only the clean view is taken over: the others depend on the number of the sample.

use std::collections::HashMap;

use calmix_io::confined_path::ConfinedPath;
use calmix_io::{atomic_file, safe_open};

use super::cache::{FeatureCache, IDENTITY, MAX_IDENTITY, MAX_OTHERS, MissingPage};
use super::{FeatureIdentity, FeatureView};
use crate::dataset::Dataset;
use crate::error::DataError;
use crate::manifest::DatasetPart;

/// The file with the keys of all samples, in the order of their ids.
const KEYS: &str = "samples.keys";
/// The largest dataset whose features are taken over; its keys are 16 MiB.
const MAX_SAMPLES: u64 = 1 << 20;
const KEY_BYTES: usize = 16;

type Key = [u8; KEY_BYTES];

impl FeatureCache {
    /// Copies the clean features of samples that caches of other states of the dataset have, once for a new cache; returns how
    /// many.
    ///
    /// # Errors
    /// If the dataset cannot be read, or this cache cannot be written. Other caches that cannot be read are skipped.
    pub fn carry_over(
        &mut self,
        parent: &ConfinedPath,
        identity: &FeatureIdentity,
        dataset: &Dataset,
    ) -> Result<u64, DataError> {
        let max_bytes = MAX_SAMPLES * KEY_BYTES as u64;
        if dataset.len() > MAX_SAMPLES || self.kept(KEYS, max_bytes).is_some() {
            return Ok(0);
        }
        let keys = sample_keys(dataset)?;
        let mut carried = 0;
        for other in same_features(parent, identity) {
            // Nothing is missing once one cache had all samples.
            let missing = self.missing(0..dataset.len(), &[FeatureView::Clean]);
            if missing.is_empty() {
                break;
            }
            let Ok(mut cache) = Self::open(parent.clone(), &other) else { continue };
            let Some(their_keys) = cache.kept(KEYS, max_bytes) else { continue };
            let their_ids: HashMap<&Key, u64> = their_keys.as_chunks().0.iter().zip(0..).collect();
            for page in missing {
                carried += self.copy_page(&mut cache, &page, &keys, &their_ids)?;
            }
        }
        self.store_checked(KEYS, keys.as_flattened())?;
        Ok(carried)
    }

    /// Copies what another cache has of a page; returns the number of samples.
    fn copy_page(
        &mut self,
        other: &mut Self,
        page: &MissingPage,
        keys: &[Key],
        their_ids: &HashMap<&Key, u64>,
    ) -> Result<u64, DataError> {
        let pairs = page.ids.iter().filter_map(|&id| {
            let theirs = their_ids.get(keys.get(usize::try_from(id).ok()?)?)?;
            Some((*theirs, id))
        });
        let pairs: Vec<(u64, u64)> = pairs.collect();
        let wanted: Vec<u64> = pairs.iter().map(|&(theirs, _)| theirs).collect();
        let Ok((found, vectors)) = other.read(&wanted, &[FeatureView::Clean]) else { return Ok(0) };
        // The vectors are in the order of `pairs`, without those that the other cache lacks.
        let mut found = found.into_iter().peekable();
        let mut ids = Vec::new();
        for (theirs, id) in pairs {
            if found.next_if_eq(&theirs).is_some() {
                ids.push(id);
            }
        }
        self.write(&MissingPage { ids: ids.clone(), views: vec![FeatureView::Clean] }, &vectors)?;
        Ok(ids.len() as u64)
    }
}

/// Computes the keys of all samples.
fn sample_keys(dataset: &Dataset) -> Result<Vec<Key>, DataError> {
    let mut keys = Vec::with_capacity(dataset.len() as usize);
    let mut part: Option<(u32, DatasetPart)> = None;
    for record in dataset.records(0..dataset.len()) {
        let (_, record) = record?;
        if part.as_ref().is_none_or(|(index, _)| *index != record.part) {
            part = Some((record.part, dataset.part(record.part)?));
        }
        let Some((_, part)) = &part else { continue };
        let mut hasher = blake3::Hasher::new();
        hasher.update(&record.length.to_le_bytes());
        hasher.update(&record.checksum.to_le_bytes());
        // Among many samples of one file, some share a checksum by chance. Shrunk images have a path of their own, and lie at
        // another place in every state of the dataset.
        let offset = if part.shrunk { 0 } else { record.offset };
        hasher.update(&offset.to_le_bytes());
        hasher.update(part.path.as_bytes());
        let mut key = Key::default();
        key.copy_from_slice(&hasher.finalize().as_bytes()[..KEY_BYTES]);
        keys.push(key);
    }
    Ok(keys)
}

/// Finds the caches below `parent` that differ from this identity only in the dataset, by name.
fn same_features(parent: &ConfinedPath, identity: &FeatureIdentity) -> Vec<FeatureIdentity> {
    let mut found = Vec::new();
    for (_, folder) in atomic_file::names(parent).unwrap_or_default().into_iter().take(MAX_OTHERS) {
        let text = safe_open::read(folder.join(IDENTITY), MAX_IDENTITY).unwrap_or_default();
        let Ok(other) = serde_json::from_slice::<FeatureIdentity>(&text) else { continue };
        if other.dataset != identity.dataset
            && (FeatureIdentity { dataset: identity.dataset.clone(), ..other.clone() }) == *identity
        {
            found.push(other);
        }
    }
    found
}
