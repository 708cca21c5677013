//! The cache: a folder of pages that only grows. Several processes and runs may fill it at once.
//!
//! A page appears under its name when it is whole, and its name follows from the samples and views in it. Two processes that
//! make the same page write the same bytes, and the second replaces the first. A page that is damaged counts as absent.
//! Where nothing can be written, pages can be held in memory instead. Below the folder that the user named no link is
//! followed, and no pipe or device is opened.
//!
//! Vectors decide what a run learns, and any process that can write a page can write other vectors with a valid hash. So only
//! pages of the same user, or of root, are used; in a folder that users share, each user has a separate cache.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use calmix_io::confined_path::ConfinedPath;
use calmix_io::{atomic_file, safe_open};

use super::page::{self, Page, PageIndex};
use super::page_map::{Location, PageKey, PageMap, StoredPage, number};
use super::{FeatureIdentity, FeatureView};
use crate::error::DataError;

/// What the cache is of, beside its pages.
const IDENTITY: &str = "cache.json";
/// Bytes of the longest [`IDENTITY`].
const MAX_IDENTITY: u64 = 64 << 10;
/// The most caches beside a new one that are looked at.
const MAX_OTHERS: usize = 1_000;
/// The prefix of page names.
const PAGE: &str = "page-";

/// A cache of feature vectors.
#[derive(Debug)]
pub struct FeatureCache {
    folder: ConfinedPath,
    /// The length of a vector, in numbers.
    width: usize,
    pages: PageMap,
    /// Pages that could not be used.
    damaged: u64,
    /// A folder or page that is not used because it belongs to another user.
    foreign: Option<ConfinedPath>,
    /// The cache of the same features, computed by another runtime, if this one is new.
    of_other_runtime: Option<ConfinedPath>,
}

/// Samples that lack the same views: what one page is going to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPage {
    /// The samples, ascending.
    pub ids: Vec<u64>,
    /// The views that they lack.
    pub views: Vec<FeatureView>,
}

impl MissingPage {
    /// The number of the page: samples near each other are on the same one.
    pub fn number(&self) -> u64 {
        self.ids.first().map_or(0, |&id| number(id))
    }

    /// Whether a sample is on this page; on one without samples, any may be.
    pub fn holds(&self, id: u64) -> bool {
        self.ids.is_empty() || number(id) == self.number()
    }
}

impl FeatureCache {
    /// Opens the cache of this identity below `parent`, and creates it if there is none. If another user has created one, it is
    /// not used and this user gets another folder.
    ///
    /// # Errors
    /// If it cannot be read or created.
    pub fn open(parent: impl Into<ConfinedPath>, identity: &FeatureIdentity) -> Result<Self, DataError> {
        let parent = &parent.into();
        let mut cache = Self::in_memory(parent, identity);
        fs::create_dir_all(parent).map_err(|error| DataError::new(parent, error))?;
        if safe_open::is_foreign(&cache.folder) {
            let own = format!("{}-{}", identity.folder_name(), safe_open::user());
            cache.foreign = Some(std::mem::replace(&mut cache.folder, parent.join(own)));
        }
        if !safe_open::exists(&cache.folder) {
            cache.of_other_runtime = other_runtime(parent, identity);
        }
        safe_open::create_folder_if_missing(&cache.folder)?;
        safe_open::check_owned_folder(&cache.folder)?;
        atomic_file::sweep_abandoned(&cache.folder);
        let told = cache.folder.join(IDENTITY);
        let text = serde_json::to_vec_pretty(identity)
            .map_err(|error| DataError::format(&told, error.to_string()))?;
        // The folder name is the hash of this file, so other content means damage. Nothing depends on it, so that the
        // cache of another user, who alone may write there, can be read.
        if safe_open::read(&told, text.len() as u64).ok().as_deref() != Some(&text) {
            let _ = atomic_file::write(&told, &text);
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

    /// The empty cache of this identity, of a folder below `parent` that is neither read nor made: for pages that
    /// [`hold`](Self::hold) keeps.
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

    /// How many of its pages could not be used; they are computed again when needed.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// A folder with features of another user, which are not used; `None` if there are none.
    pub fn foreign(&self) -> Option<&Path> {
        self.foreign.as_deref()
    }

    /// The folder with the same features as another runtime or another version computed them, which are not used; `None` if
    /// there is none, or if this cache is not new.
    pub fn of_other_runtime(&self) -> Option<&Path> {
        self.of_other_runtime.as_deref()
    }

    /// A file that [`store_checked`](Self::store_checked) kept under this name; `None` if there is none or it is damaged.
    pub fn kept(&self, name: &str, longest: u64) -> Option<Vec<u8>> {
        let path = self.folder.join(name);
        let mut bytes = safe_open::read_owned(&path, longest + blake3::OUT_LEN as u64).ok()?;
        let hash = bytes.split_off(bytes.len().checked_sub(blake3::OUT_LEN)?);
        (hash == blake3::hash(&bytes).as_bytes()).then_some(bytes)
    }

    /// Keeps a file beside the pages, with its BLAKE3 behind it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn store_checked(&self, name: &str, bytes: &[u8]) -> Result<(), DataError> {
        let bytes = [bytes, blake3::hash(bytes).as_bytes()].concat();
        atomic_file::write(self.folder.join(name), &bytes)?;
        Ok(())
    }

    /// Keeps a file beside the pages, whole, unless it is there with these bytes; returns where.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> Result<ConfinedPath, DataError> {
        let path = self.folder.join(name);
        if !safe_open::open_owned(&path).is_ok_and(|(file, _)| has_bytes(file, bytes).unwrap_or(false)) {
            atomic_file::write(&path, bytes)?;
        }
        Ok(path)
    }

    /// The views of these samples that the cache lacks, divided into pages by their ids: the division does not depend on
    /// which pages exist already.
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

    /// Keeps the vectors of a page: sample by sample, view by view.
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

    /// Keeps the vectors of a page as [`write`](Self::write) does, but in memory and for this process alone.
    ///
    /// # Errors
    /// If their number does not match the page.
    pub fn hold(&mut self, need: &MissingPage, vectors: Vec<u8>) -> Result<(), DataError> {
        let Some(index) = self.index_of(need, &vectors)? else { return Ok(()) };
        self.pages.add(StoredPage::Memory(vectors), &index);
        Ok(())
    }

    /// The index of a page with these vectors; `None` if it is empty.
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

    /// The vectors of these samples in these views: sample by sample, view by view. Samples that the cache lacks, or whose
    /// page is damaged, are left out; the ids of the others are returned with the vectors.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub fn read(&mut self, ids: &[u64], views: &[FeatureView]) -> Result<(Vec<u64>, Vec<u8>), DataError> {
        let place = |id: u64| -> Option<Vec<Location>> {
            views.iter().map(|&view| self.pages.find(id, view)).collect()
        };
        let found: Vec<(u64, Vec<Location>)> = ids.iter().filter_map(|&id| Some((id, place(id)?))).collect();
        let each = 2 * self.width;
        let mut out = vec![0; found.len() * views.len() * each];
        // Each page is read once: which of its vectors go where.
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
        // From the last one, so that the keys of the others stay valid.
        for &page in lost.iter().rev() {
            self.pages.remove(page);
        }
        self.read(ids, views)
    }

    /// Which of these samples the cache has in all of these views. Their pages may turn out to be damaged.
    pub fn held(&self, ids: &[u64], views: &[FeatureView]) -> Vec<u64> {
        let has_all = |id: u64| views.iter().all(|&view| self.pages.find(id, view).is_some());
        ids.iter().copied().filter(|&id| has_all(id)).collect()
    }
}

/// Ascending samples, divided into those that are on one page: they are read together.
pub fn by_page(ids: &[u64]) -> impl Iterator<Item = &[u64]> {
    ids.chunk_by(|&a, &b| number(a) == number(b))
}

/// A cache below `parent` that differs from this identity only in what ran the backbone. Only a message depends on it, so
/// what cannot be read is passed over.
fn other_runtime(parent: &ConfinedPath, identity: &FeatureIdentity) -> Option<ConfinedPath> {
    let folders = atomic_file::names(parent).ok()?.into_iter().take(MAX_OTHERS).map(|(_, folder)| folder);
    folders.into_iter().find(|folder| {
        let text = safe_open::read(folder.join(IDENTITY), MAX_IDENTITY).unwrap_or_default();
        let other = serde_json::from_slice::<FeatureIdentity>(&text);
        other.is_ok_and(|other| identity.is_of_other_runtime(&other))
    })
}

/// Whether a file has exactly these bytes.
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

    /// No process of ours writes such a page: its name and its hash are right, its samples are not ascending.
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
