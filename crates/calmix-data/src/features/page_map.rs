//! Maps a sample to the page of its vector. It has an entry per page, not per vector, since a cache may hold vectors of
//! millions of samples in several views.

use std::borrow::Cow;
use std::collections::BTreeMap;

use calmix_io::confined_path::ConfinedPath;

use super::FeatureView;
use super::page::{PAGE_SAMPLES, Page, PageIndex};
use crate::error::DataError;

/// Returns the number of the page of a sample: samples with nearby ids share a page.
pub(super) fn number(id: u64) -> u64 {
    id / PAGE_SAMPLES as u64
}

/// The pages of a cache, by number. Pages with the same number have different samples or views.
#[derive(Debug, Default)]
pub(super) struct PageMap {
    pages: BTreeMap<u64, Vec<CachedPage>>,
}

/// A page and its content.
#[derive(Debug)]
struct CachedPage {
    /// Bit n is set if the page contains the n-th sample with its number.
    samples: [u64; PAGE_SAMPLES / 64],
    views: Vec<FeatureView>,
    stored: StoredPage,
}

/// The location of a page's vectors.
#[derive(Debug)]
pub(super) enum StoredPage {
    File(ConfinedPath),
    Memory(Vec<u8>),
}

/// The location of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) page: PageKey,
    /// The index of the vector on the page.
    pub(super) vector: usize,
}

/// The key of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PageKey {
    number: u64,
    /// The index among the pages with this number.
    place: usize,
}

impl PageMap {
    /// Adds a page. Returns `false` if its samples do not belong to one page or are not ascending.
    pub(super) fn add(&mut self, stored: StoredPage, index: &PageIndex) -> bool {
        let Some(number) = page_number(&index.ids) else { return false };
        let mut samples = [0; PAGE_SAMPLES / 64];
        for id in &index.ids {
            let bit = (id % PAGE_SAMPLES as u64) as usize;
            samples[bit / 64] |= 1 << (bit % 64);
        }
        let page = CachedPage { samples, views: index.views.clone(), stored };
        self.pages.entry(number).or_default().push(page);
        true
    }

    /// Finds the vector of a sample in a view; if several pages have it, the one that was added first counts.
    pub(super) fn find(&self, id: u64, view: FeatureView) -> Option<Location> {
        let number = number(id);
        let pages = self.pages.get(&number)?.iter().enumerate();
        pages.into_iter().find_map(|(place, page)| {
            let vector = page.position(id, view)?;
            Some(Location { page: PageKey { number, place }, vector })
        })
    }

    /// Reads and verifies all vectors of a page; `None` if there is no such page.
    pub(super) fn vectors(&self, key: PageKey) -> Option<Result<Cow<'_, [u8]>, DataError>> {
        let page = self.pages.get(&key.number)?.get(key.place)?;
        Some(match &page.stored {
            StoredPage::File(path) => Page::open(path).and_then(|page| page.vectors(path)).map(Cow::Owned),
            StoredPage::Memory(vectors) => Ok(Cow::Borrowed(vectors)),
        })
    }

    /// Removes a page. Keys of other pages with the same number become invalid.
    pub(super) fn remove(&mut self, key: PageKey) {
        if let Some(pages) = self.pages.get_mut(&key.number)
            && key.place < pages.len()
        {
            pages.remove(key.place);
        }
    }
}

impl CachedPage {
    /// Returns the index of a vector on the page.
    fn position(&self, id: u64, view: FeatureView) -> Option<usize> {
        let view = self.views.iter().position(|&own| own == view)?;
        let bit = (id % PAGE_SAMPLES as u64) as usize;
        let (before, word) = (&self.samples[..bit / 64], self.samples[bit / 64]);
        if word >> (bit % 64) & 1 == 0 {
            return None;
        }
        let earlier = before.iter().map(|word| word.count_ones()).sum::<u32>()
            + (word & ((1 << (bit % 64)) - 1)).count_ones();
        Some(earlier as usize * self.views.len() + view)
    }
}

/// Returns the page number of these samples; `None` if they are not ascending or belong to different pages.
fn page_number(ids: &[u64]) -> Option<u64> {
    let first = number(*ids.first()?);
    let is_ascending = ids.is_sorted_by(|a, b| a < b);
    (is_ascending && number(*ids.last()?) == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEWS: [FeatureView; 2] = [FeatureView::Weak(0), FeatureView::Clean];

    fn index(ids: &[u64]) -> PageIndex {
        PageIndex { width: 1, views: VIEWS.to_vec(), ids: ids.to_vec() }
    }

    #[test]
    fn vectors_are_found_by_their_rank_on_the_page() {
        let mut map = PageMap::default();
        let ids = [512, 515, 575, 576, 640, 767];
        assert!(map.add(StoredPage::Memory(Vec::new()), &index(&ids)));
        for (n, &id) in ids.iter().enumerate() {
            for (place, view) in VIEWS.into_iter().enumerate() {
                assert_eq!(map.find(id, view).unwrap().vector, 2 * n + place, "{id}");
            }
            assert_eq!(map.find(id, FeatureView::Weak(1)), None);
            assert_eq!(map.find(id + 1, FeatureView::Clean).is_some(), ids.contains(&(id + 1)), "{id}");
            assert_eq!(map.find(id - 256, FeatureView::Clean), None);
        }
    }

    #[test]
    fn first_of_two_pages_is_used_until_it_is_removed() {
        let mut map = PageMap::default();
        let mut add = |ids: &[u64], byte| map.add(StoredPage::Memory(vec![byte]), &index(ids));
        assert!(add(&[3, 5], 1) && add(&[5, 9], 2));
        let byte = |map: &PageMap, id| {
            let found = map.find(id, FeatureView::Clean)?;
            Some(map.vectors(found.page)?.unwrap()[0])
        };
        assert_eq!([3, 5, 9].map(|id| byte(&map, id)), [Some(1), Some(1), Some(2)]);
        let first = map.find(5, FeatureView::Clean).unwrap().page;
        map.remove(first);
        assert_eq!([3, 5, 9].map(|id| byte(&map, id)), [None, Some(2), Some(2)]);
    }

    #[test]
    fn samples_of_different_pages_are_refused() {
        for ids in [&[255, 256][..], &[7, 7], &[8, 7], &[]] {
            assert!(!PageMap::default().add(StoredPage::Memory(Vec::new()), &index(ids)), "{ids:?}");
        }
    }
}
