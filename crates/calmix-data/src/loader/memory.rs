//! A cache of decoded images.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use calmix_formats::image::Image;

use super::views::ImageSource;
use crate::error::DataError;

/// Keeps decoded images in memory up to a limit; images beyond it are decoded every time.
///
/// Suited to small images: CIFAR-10 takes 184 MB. Which images are cached depends on the timing of the workers, but not
/// their content.
#[derive(Debug)]
pub struct InMemory<P> {
    source: P,
    limit: u64,
    used: AtomicU64,
    kept: [RwLock<BTreeMap<u64, Image>>; LOCKS],
}

/// The number of locks, one per group of ids, so that workers seldom wait for each other.
const LOCKS: usize = 64;

/// Approximate overhead of an image in the map, in bytes.
const OVERHEAD: u64 = 64;

impl<P: ImageSource> InMemory<P> {
    /// Makes a cache of at most `limit` bytes for the images of `source`.
    pub fn new(source: P, limit: u64) -> Self {
        Self { source, limit, used: AtomicU64::new(0), kept: std::array::from_fn(|_| RwLock::default()) }
    }

    fn store(&self, id: u64, image: &Image) {
        let bytes = image.pixels().len() as u64 + OVERHEAD;
        let fits = |used: u64| used.checked_add(bytes).filter(|&used| used <= self.limit);
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            return;
        }
        let mut map = self.map(id).write().unwrap_or_else(PoisonError::into_inner);
        if map.insert(id, image.clone()).is_some() {
            // Another worker has cached the same image meanwhile.
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    fn map(&self, id: u64) -> &RwLock<BTreeMap<u64, Image>> {
        &self.kept[(id % LOCKS as u64) as usize]
    }
}

impl<P: ImageSource> ImageSource for InMemory<P> {
    fn image(&self, id: u64) -> Result<Image, DataError> {
        let kept = self.map(id).read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        if let Some(image) = kept {
            return Ok(image);
        }
        let image = self.source.image(id)?;
        self.store(id, &image);
        Ok(image)
    }

    fn prefetch(&self, ids: &[u64]) {
        self.source.prefetch(ids);
    }

    fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
        self.source.label(id)
    }

    fn name(&self, id: u64) -> Result<String, DataError> {
        self.source.name(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Counting(AtomicU64);

    impl ImageSource for Counting {
        fn image(&self, id: u64) -> Result<Image, DataError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Image::filled(4, 4, [id as u8; 3]))
        }

        fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
            Ok(Some(id as u32))
        }
    }

    #[test]
    fn cached_images_are_decoded_once() {
        let memory = InMemory::new(Counting::default(), 3 * (48 + OVERHEAD) + 1);
        for _ in 0..2 {
            for id in 0..5 {
                assert_eq!(memory.image(id).unwrap(), Image::filled(4, 4, [id as u8; 3]));
                assert_eq!(memory.label(id).unwrap(), Some(id as u32));
            }
        }
        assert_eq!(memory.source.0.load(Ordering::Relaxed), 5 + 2);
        assert_eq!(memory.used.load(Ordering::Relaxed), 3 * (48 + OVERHEAD));
    }
}
