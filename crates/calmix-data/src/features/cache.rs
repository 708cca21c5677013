//! The cache: an append-only folder of pages that several processes and runs may fill at once.
//!
//! A page gets its name when it is complete, and the name is derived from its samples and views. Two processes that compute
//! the same page write the same bytes, and the second replaces the first. A damaged page counts as absent. If the folder is
//! not writable, pages are kept in memory. Below the folder that the user named, links are not followed and pipes and
//! devices are not opened.
//!
//! The vectors determine the result of a run, and any process that can write a page can write other vectors with a valid
//! hash. So only pages of the same user or of root are used; in a shared folder, each user has a separate cache.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use calmix_io::confined_path::ConfinedPath;
use calmix_io::{atomic_file, safe_open, system};

use super::page::{self, Page, PageIndex};
use super::page_map::{Location, PageKey, PageMap, StoredPage, number};
use super::{FeatureIdentity, FeatureView};
use crate::error::DataError;

/// The file with the identity of the cache.
pub(super) const IDENTITY: &str = "cache.json";
/// The maximum size of [`IDENTITY`], in bytes.
pub(super) const MAX_IDENTITY: u64 = 64 << 10;
/// The maximum number of other caches that a new one searches.
pub(super) const MAX_OTHERS: usize = 1_000;
/// The prefix of page names.
const PAGE: &str = "page-";

/// A cache of feature vectors.
#[derive(Debug)]
pub struct FeatureCache {
    folder: ConfinedPath,
    /// The length of a vector, in numbers.
    width: usize,
    pages: PageMap,
    /// The number of pages that could not be used.
    damaged: u64,
    /// A folder or page that is ignored because it belongs to another user.
    foreign: Option<ConfinedPath>,
    /// The cache of the same features from another runtime, if this cache is new.
    of_other_runtime: Option<ConfinedPath>,
}

/// Samples that lack the same views: the content of one new page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPage {
    /// The samples, ascending.
    pub ids: Vec<u64>,
    /// The views that are missing.
    pub views: Vec<FeatureView>,
}

impl MissingPage {
    /// Returns the number of the page: samples with nearby ids share a page.
    pub fn number(&self) -> u64 {
        self.ids.first().map_or(0, |&id| number(id))
    }

    /// Returns whether a sample is on this page; always true for a page without samples.
    pub fn holds(&self, id: u64) -> bool {
        self.ids.is_empty() || number(id) == self.number()
    }
}

impl FeatureCache {
    /// Opens the cache of this identity below `parent`, creating it if necessary. A cache of another user is not used; this
    /// user gets another folder.
    pub fn open(parent: impl Into<ConfinedPath>, identity: &FeatureIdentity) -> Result<Self, DataError> {
        let parent = &parent.into();
        let mut cache = Self::in_memory(parent, identity);
        safe_open::create_folders(parent).map_err(|error| DataError::new(parent, error))?;
        if safe_open::is_foreign(&cache.folder) {
            // Only systems with user ids know a folder of another user.
            let own = format!("{}-{}", identity.folder_name(), system::user().unwrap_or_default());
            cache.foreign = Some(std::mem::replace(&mut cache.folder, parent.join(own)));
        }
        if !safe_open::exists(&cache.folder) {
            cache.of_other_runtime = other_runtime(parent, identity);
        }
        safe_open::create_folder_if_missing(&cache.folder)?;
        safe_open::check_owned_folder(&cache.folder)?;
        atomic_file::sweep_abandoned(&cache.folder);
        let identity_path = cache.folder.join(IDENTITY);
        let text = serde_json::to_vec_pretty(identity)
            .map_err(|error| DataError::format(&identity_path, error.to_string()))?;
        // The folder name is the hash of this file, so other content means damage. A cache in which only
        // another user may write can still be read, since nothing depends on this file.
        if safe_open::read(&identity_path, text.len() as u64).ok().as_deref() != Some(&text) {
            let _ = atomic_file::write(&identity_path, &text);
        }
        let names = atomic_file::names(&cache.folder)?;
        for (_, path) in names.into_iter().filter(|(name, _)| name.starts_with(PAGE)) {
            if safe_open::is_foreign(&path) {
                cache.foreign.get_or_insert_with(|| cache.folder.clone());
                continue;
            }
            match Page::open(&path) {
                Ok(page) if page.index.width == cache.width && path.ends_with(page.index.name()) => {
                    let is_sound = cache.pages.add(StoredPage::File(path), &page.index);
                    cache.damaged += u64::from(!is_sound);
                }
                Err(error) if error.is_transient() => return Err(error),
                _ => cache.damaged += 1,
            }
        }
        Ok(cache)
    }

    /// Returns an empty in-memory cache of this identity: its folder below `parent` is neither read nor created, and
    /// [`hold`](Self::hold) adds pages.
    pub fn in_memory(parent: impl Into<ConfinedPath>, identity: &FeatureIdentity) -> Self {
        Self {
            folder: parent.into().join(identity.folder_name()),
            width: identity.width as usize,
            pages: PageMap::default(),
            damaged: 0,
            foreign: None,
            of_other_runtime: None,
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the number of its pages that could not be used; they are recomputed when needed.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Returns a folder with features of another user, which are not used; `None` if there is none.
    pub fn foreign(&self) -> Option<&Path> {
        self.foreign.as_deref()
    }

    /// Returns the folder with the same features from another runtime or version, which are not used; `None` if there is
    /// none, or if this cache is not new.
    pub fn of_other_runtime(&self) -> Option<&Path> {
        self.of_other_runtime.as_deref()
    }

    /// Reads a file that [`store_checked`](Self::store_checked) stored under this name; `None` if it is missing or damaged.
    pub fn kept(&self, name: &str, longest: u64) -> Option<Vec<u8>> {
        let path = self.folder.join(name);
        let mut bytes = safe_open::read_owned(&path, longest + blake3::OUT_LEN as u64).ok()?;
        let hash = bytes.split_off(bytes.len().checked_sub(blake3::OUT_LEN)?);
        (hash == blake3::hash(&bytes).as_bytes()).then_some(bytes)
    }

    /// Stores a file beside the pages, followed by its BLAKE3.
    pub fn store_checked(&self, name: &str, bytes: &[u8]) -> Result<(), DataError> {
        let bytes = [bytes, blake3::hash(bytes).as_bytes()].concat();
        atomic_file::write(self.folder.join(name), &bytes)?;
        Ok(())
    }

    /// Stores a complete file beside the pages unless it exists with these bytes, and returns its path.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> Result<ConfinedPath, DataError> {
        let path = self.folder.join(name);
        if !safe_open::open_owned(&path).is_ok_and(|(file, _)| has_bytes(file, bytes).unwrap_or(false)) {
            atomic_file::write(&path, bytes)?;
        }
        Ok(path)
    }

    /// Lists the views that the cache lacks for these samples, divided into pages by id: the division does not depend on
    /// which pages already exist.
    pub fn missing(&self, ids: impl IntoIterator<Item = u64>, views: &[FeatureView]) -> Vec<MissingPage> {
        let mut lacking: BTreeMap<(Vec<FeatureView>, u64), Vec<u64>> = BTreeMap::new();
        for id in ids {
            let lacks: Vec<_> =
                views.iter().copied().filter(|&view| self.pages.find(id, view).is_none()).collect();
            if !lacks.is_empty() {
                lacking.entry((lacks, number(id))).or_default().push(id);
            }
        }
        let pages = lacking.into_iter().map(|((views, _), mut ids)| {
            ids.sort_unstable();
            ids.dedup();
            MissingPage { ids, views }
        });
        pages.collect()
    }

    /// Stores the vectors of a page, sample by sample and view by view.
    ///
    /// # Errors
    /// If their number does not match the page, or they cannot be written.
    pub fn write(&mut self, need: &MissingPage, vectors: &[u8]) -> Result<(), DataError> {
        let Some(index) = self.index_of(need, vectors)? else { return Ok(()) };
        let path = self.folder.join(index.name());
        let page =
            page::to_bytes(&index, vectors).map_err(|error| DataError::content(&path, error.to_string()))?;
        atomic_file::write(&path, &page)?;
        self.pages.add(StoredPage::File(path), &index);
        Ok(())
    }

    /// Keeps the vectors of a page as [`write`](Self::write) does, but only in the memory of this process.
    ///
    /// # Errors
    /// If their number does not match the page.
    pub fn hold(&mut self, need: &MissingPage, vectors: Vec<u8>) -> Result<(), DataError> {
        let Some(index) = self.index_of(need, &vectors)? else { return Ok(()) };
        self.pages.add(StoredPage::Memory(vectors), &index);
        Ok(())
    }

    /// Returns the index of a page with these vectors; `None` if it is empty.
    fn index_of(&self, need: &MissingPage, vectors: &[u8]) -> Result<Option<PageIndex>, DataError> {
        let index = PageIndex { width: self.width, views: need.views.clone(), ids: need.ids.clone() };
        let mut problem = None;
        if index.vector_bytes() != vectors.len() {
            let expected = index.vector_bytes();
            problem = Some(format!("{} bytes of vectors for a page of {expected} bytes", vectors.len()));
        } else if !need.ids.is_sorted_by(|a, b| a < b) || !need.ids.iter().all(|&id| need.holds(id)) {
            problem = Some("the samples of a page are not ascending, or not those of one page".to_owned());
        }
        if let Some(problem) = problem {
            return Err(DataError::content(&self.folder, problem));
        }
        Ok((!vectors.is_empty()).then_some(index))
    }

    /// Reads the vectors of these samples and views, sample by sample and view by view. Samples that are missing or on a
    /// damaged page are left out, and the ids of the others are returned with the vectors.
    pub fn read(&mut self, ids: &[u64], views: &[FeatureView]) -> Result<(Vec<u64>, Vec<u8>), DataError> {
        let place = |id: u64| -> Option<Vec<Location>> {
            views.iter().map(|&view| self.pages.find(id, view)).collect()
        };
        let found: Vec<(u64, Vec<Location>)> = ids.iter().filter_map(|&id| Some((id, place(id)?))).collect();
        let each = 2 * self.width;
        let mut out = vec![0; found.len() * views.len() * each];
        // Each page is read once; this maps its vectors to their destinations.
        let mut moves: BTreeMap<PageKey, Vec<(usize, usize)>> = BTreeMap::new();
        for (to, from) in found.iter().flat_map(|(_, places)| places).enumerate() {
            moves.entry(from.page).or_default().push((from.vector, to));
        }
        let mut lost = Vec::new();
        for (page, moves) in moves {
            let vectors = match self.pages.vectors(page) {
                Some(Ok(vectors)) => vectors,
                Some(Err(error)) if error.is_transient() => return Err(error),
                _ => {
                    lost.push(page);
                    continue;
                }
            };
            for (from, to) in moves {
                let vector = vectors.get(from * each..(from + 1) * each).unwrap_or_default();
                out[to * each..][..vector.len()].copy_from_slice(vector);
            }
        }
        if lost.is_empty() {
            return Ok((found.into_iter().map(|(id, _)| id).collect(), out));
        }
        self.damaged += lost.len() as u64;
        // In reverse order, so that the remaining keys stay valid.
        for &page in lost.iter().rev() {
            self.pages.remove(page);
        }
        self.read(ids, views)
    }

    /// Lists which of these samples the cache has in all of these views. Their pages may still turn out to be damaged.
    pub fn held(&self, ids: &[u64], views: &[FeatureView]) -> Vec<u64> {
        let has_all = |id: u64| views.iter().all(|&view| self.pages.find(id, view).is_some());
        ids.iter().copied().filter(|&id| has_all(id)).collect()
    }
}

/// Divides ascending samples into runs on the same page, which are read together.
pub fn by_page(ids: &[u64]) -> impl Iterator<Item = &[u64]> {
    ids.chunk_by(|&a, &b| number(a) == number(b))
}

/// Finds a cache below `parent` that differs from this identity only in the runtime of the backbone. It is only used for a
/// message, so unreadable folders are skipped.
fn other_runtime(parent: &ConfinedPath, identity: &FeatureIdentity) -> Option<ConfinedPath> {
    let folders = atomic_file::names(parent).ok()?.into_iter().take(MAX_OTHERS).map(|(_, folder)| folder);
    folders.into_iter().find(|folder| {
        let text = safe_open::read(folder.join(IDENTITY), MAX_IDENTITY).unwrap_or_default();
        let other = serde_json::from_slice::<FeatureIdentity>(&text);
        other.is_ok_and(|other| identity.is_of_other_runtime(&other))
    })
}

/// Returns whether a file has exactly these bytes.
fn has_bytes(mut file: File, mut bytes: &[u8]) -> io::Result<bool> {
    let mut piece = vec![0; 256 << 10];
    loop {
        let read = file.read(&mut piece)?;
        let Some(rest) = bytes.strip_prefix(&piece[..read]) else { return Ok(false) };
        if read == 0 {
            return Ok(rest.is_empty());
        }
        bytes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::super::FORMAT;
    use super::*;

    /// calmix never writes such a page: its name and hash are right, but its samples are not ascending.
    #[test]
    fn page_of_unordered_samples_counts_as_damaged() {
        let temp = tempfile::tempdir().unwrap();
        let text = String::new;
        let identity = FeatureIdentity {
            format: FORMAT,
            dataset: text(),
            views: text(),
            backbone: text(),
            runtime: text(),
            width: 1,
        };
        let folder = FeatureCache::open(temp.path(), &identity).unwrap().folder.clone();
        for (ids, damaged) in [([7, 8], 0), ([8, 7], 1)] {
            let index = PageIndex { width: 1, views: vec![FeatureView::Clean], ids: ids.to_vec() };
            atomic_file::write(folder.join(index.name()), &page::to_bytes(&index, &[0; 4]).unwrap()).unwrap();
            let cache = FeatureCache::open(temp.path(), &identity).unwrap();
            assert_eq!((cache.damaged(), cache.held(&[7, 8], &index.views)), (damaged, vec![7, 8]));
        }
    }
}
