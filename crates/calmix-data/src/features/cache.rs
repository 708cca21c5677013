//! The cache: a folder of pages that only grows. Several processes and runs may fill it at once.
//!
//! A page appears under its name when it is whole, and its name follows from the samples and views in it. Two processes that
//! make the same page write the same bytes, and the second replaces the first. A page that is damaged counts as absent.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use calmix_io::atomic_file;

use super::page::{self, PageHeader, SAMPLES};
use super::{FeatureIdentity, FeatureView};
use crate::error::{DataError, DataProblem};

/// What the cache is of, beside its pages.
const IDENTITY: &str = "cache.json";
const PAGE: &str = "features";

/// A cache of feature vectors.
#[derive(Debug)]
pub struct FeatureCache {
    folder: PathBuf,
    bytes: usize,
    pages: Vec<PathBuf>,
    index: HashMap<(u64, FeatureView), Location>,
    /// Pages that could not be used.
    damaged: u64,
}

/// Where a vector is.
#[derive(Debug, Clone, Copy)]
struct Location {
    page: u32,
    /// Its number within the page.
    vector: u32,
}

/// Samples that lack the same views: what one page is going to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageNeed {
    /// The samples, ascending.
    pub ids: Vec<u64>,
    /// The views that they lack.
    pub views: Vec<FeatureView>,
}

impl PageNeed {
    /// The number of the page: samples near each other are on the same one.
    pub fn number(&self) -> u64 {
        self.ids.first().map_or(0, |&id| number(id))
    }

    /// Whether a sample is on this page; on one without samples, any may be.
    pub fn holds(&self, id: u64) -> bool {
        self.ids.is_empty() || number(id) == self.number()
    }
}

/// The number of the page that a sample is on.
fn number(id: u64) -> u64 {
    id / SAMPLES as u64
}

impl FeatureCache {
    /// Opens the cache of this identity below `parent`, and makes it where there is none.
    ///
    /// # Errors
    /// If it cannot be read or made.
    pub fn open(parent: &Path, identity: &FeatureIdentity) -> Result<Self, DataError> {
        let folder = parent.join(identity.folder_name());
        fs::create_dir_all(&folder).map_err(|error| DataError::new(&folder, error))?;
        atomic_file::sweep_abandoned(&folder);
        let told = folder.join(IDENTITY);
        let text = serde_json::to_vec_pretty(identity)
            .map_err(|error| DataError::new(&told, DataProblem::Format(error.to_string())))?;
        // The name of the folder is its hash: whatever else it says, it is damaged.
        if fs::read(&told).ok().as_deref() != Some(&text) {
            atomic_file::write(&told, &text).map_err(DataError::of_file)?;
        }
        let bytes = identity.bytes as usize;
        let mut cache = Self { folder, bytes, pages: Vec::new(), index: HashMap::new(), damaged: 0 };
        let mut pages = Vec::new();
        let unread = |error| DataError::new(&cache.folder, error);
        for entry in fs::read_dir(&cache.folder).map_err(unread)? {
            let path = entry.map_err(unread)?.path();
            if path.extension().is_some_and(|extension| extension == PAGE) {
                pages.push(path);
            }
        }
        pages.sort_unstable();
        for path in pages {
            match page::read_header(&path) {
                Ok(header) if header.bytes == bytes && path.ends_with(header.name()) => {
                    cache.add(path, &header);
                }
                Err(error) if error.is_transient() => return Err(error),
                _ => cache.damaged += 1,
            }
        }
        Ok(cache)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many of its pages could not be used; they are made again where they are needed.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// A file that [`keep_checked`](Self::keep_checked) kept under this name; none where there is none or it is damaged.
    pub fn kept(&self, name: &str, longest: u64) -> Option<Vec<u8>> {
        let path = self.folder.join(name);
        let length = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?.len();
        let mut bytes = (length <= longest + 4).then(|| fs::read(path).ok()).flatten()?;
        let checksum = bytes.split_off(bytes.len().checked_sub(4)?);
        (checksum == crc32c::crc32c(&bytes).to_le_bytes()).then_some(bytes)
    }

    /// Keeps a file beside the pages, with its checksum.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_checked(&self, name: &str, bytes: &[u8]) -> Result<(), DataError> {
        let bytes = [bytes, &crc32c::crc32c(bytes).to_le_bytes()].concat();
        atomic_file::write(&self.folder.join(name), &bytes).map_err(DataError::of_file)
    }

    /// Keeps a file beside the pages, whole, unless it is there; returns where.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, DataError> {
        let path = self.folder.join(name);
        let there = fs::metadata(&path).is_ok_and(|found| found.len() == bytes.len() as u64);
        if !there {
            atomic_file::write(&path, bytes).map_err(DataError::of_file)?;
        }
        Ok(path)
    }

    /// What is not there yet of these views of these samples, cut into pages by their ids: which pages are made does not
    /// depend on which of them are there already.
    pub fn missing(&self, ids: impl IntoIterator<Item = u64>, views: &[FeatureView]) -> Vec<PageNeed> {
        let mut lacking: BTreeMap<(Vec<FeatureView>, u64), Vec<u64>> = BTreeMap::new();
        for id in ids {
            let lacks: Vec<_> =
                views.iter().copied().filter(|view| !self.index.contains_key(&(id, *view))).collect();
            if !lacks.is_empty() {
                lacking.entry((lacks, number(id))).or_default().push(id);
            }
        }
        let pages = lacking.into_iter().map(|((views, _), mut ids)| {
            ids.sort_unstable();
            ids.dedup();
            PageNeed { ids, views }
        });
        pages.collect()
    }

    /// Keeps the vectors of a page: sample by sample, view by view.
    ///
    /// # Errors
    /// If they are not as many as the page needs, or cannot be written.
    pub fn write(&mut self, need: &PageNeed, vectors: &[u8]) -> Result<(), DataError> {
        let header = PageHeader { bytes: self.bytes, views: need.views.clone(), ids: need.ids.clone() };
        if header.vectors() != vectors.len() || need.ids.len() > SAMPLES {
            let problem = format!("{} bytes of vectors for a page of {}", vectors.len(), header.vectors());
            return Err(DataError::new(&self.folder, DataProblem::Content(problem)));
        }
        if need.ids.is_empty() || need.views.is_empty() {
            return Ok(());
        }
        let path = self.folder.join(header.name());
        atomic_file::write(&path, &page::to_bytes(&header, vectors)).map_err(DataError::of_file)?;
        self.add(path, &header);
        Ok(())
    }

    /// The vectors of these samples in these views: sample by sample, view by view. Samples that are not there, or whose
    /// page is damaged, are left out; the ids of the others come with them.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub fn read(&mut self, ids: &[u64], views: &[FeatureView]) -> Result<(Vec<u64>, Vec<u8>), DataError> {
        let place = |id: u64| -> Option<Vec<Location>> {
            views.iter().map(|&view| self.index.get(&(id, view)).copied()).collect()
        };
        let found: Vec<(u64, Vec<Location>)> = ids.iter().filter_map(|&id| Some((id, place(id)?))).collect();
        let mut out = vec![0; found.len() * views.len() * self.bytes];
        // Each page is read once: which of its vectors go where.
        let mut moves: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
        for (to, from) in found.iter().flat_map(|(_, places)| places).enumerate() {
            moves.entry(from.page).or_default().push((from.vector as usize, to));
        }
        let mut lost = Vec::new();
        for (page, moves) in moves {
            let vectors = match self.pages.get(page as usize).map(|path| page::read(path)) {
                Some(Ok((_, vectors))) => vectors,
                Some(Err(error)) if error.is_transient() => return Err(error),
                _ => {
                    lost.push(page);
                    continue;
                }
            };
            for (from, to) in moves {
                let vector = vectors.get(from * self.bytes..(from + 1) * self.bytes).unwrap_or_default();
                out[to * self.bytes..][..vector.len()].copy_from_slice(vector);
            }
        }
        if lost.is_empty() {
            return Ok((found.into_iter().map(|(id, _)| id).collect(), out));
        }
        self.forget(&lost);
        self.read(ids, views)
    }

    /// Counts pages as absent.
    fn forget(&mut self, pages: &[u32]) {
        self.damaged += pages.len() as u64;
        self.index.retain(|_, at| !pages.contains(&at.page));
    }

    fn add(&mut self, path: PathBuf, header: &PageHeader) {
        let page = self.pages.len() as u32;
        self.pages.push(path);
        let all = header.ids.iter().flat_map(|&id| header.views.iter().map(move |&view| (id, view)));
        for (vector, key) in (0..).zip(all) {
            self.index.entry(key).or_insert(Location { page, vector });
        }
    }
}
