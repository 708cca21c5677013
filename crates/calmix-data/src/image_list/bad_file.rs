//! Detects a single unreadable file, such as one on a bad sector, for which waiting does not help.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use calmix_io::system::is_on_same_device;
use calmix_io::transient::BackOff;

use super::listed_image::{ImagePlace, ListedImage};
use crate::error::DataError;

/// The maximum number of other files to try when checking whether the storage works.
const MAX_TRIED: usize = 16;

/// The images that cannot be read, with the time of their first failure.
#[derive(Debug)]
pub(super) struct FailingFiles {
    since: Mutex<BTreeMap<u64, Instant>>,
    /// How long reading an image must fail before the image itself counts as bad.
    patience: Duration,
}

impl Default for FailingFiles {
    fn default() -> Self {
        Self { since: Mutex::default(), patience: BackOff::MAX_TOTAL_WAIT }
    }
}

impl FailingFiles {
    /// Classifies the error of an unreadable image: transient, so that it is retried, or permanent if reading has failed for
    /// `patience` although the storage serves other files.
    pub(super) fn classify(&self, id: u64, error: DataError, images: &[ListedImage]) -> DataError {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = since.entry(id).or_insert_with(Instant::now).elapsed();
        drop(since);
        let image = usize::try_from(id).ok().and_then(|id| images.get(id));
        let is_alone = || image.is_some_and(|image| storage_serves_others(image, id as usize, images));
        if waited < self.patience || !is_alone() {
            return error;
        }
        let waited = waited.as_secs();
        error.with_format(|problem| format!("{problem}, for {waited} s, while other files can be read"))
    }
}

/// Returns whether the storage of an image serves another file: one of the list (later ones first, since they are not cached
/// yet), or one in the same folder.
fn storage_serves_others(image: &ListedImage, id: usize, images: &[ListedImage]) -> bool {
    let Some(path) = image.place.file() else { return false };
    let (before, after) = images.split_at(id.min(images.len()));
    let listed = after.iter().skip(1).chain(before.iter().rev());
    let same_storage =
        |other: &&ListedImage| other.place.file().is_some_and(|other| is_on_same_device(path, other));
    if listed.filter(same_storage).take(MAX_TRIED).any(|other| other.place.can_be_read()) {
        return true;
    }
    let folder = path.parent().and_then(|folder| fs::read_dir(folder).ok());
    let others =
        folder.into_iter().flatten().flatten().map(|entry| entry.path()).filter(|other| other != path);
    others.take(MAX_TRIED).any(|other| ImagePlace::File(other).can_be_read())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::Arc;

    use calmix_testkit::png_file::{Pixels, png};

    use super::*;
    use crate::augment::Augment;
    use crate::image_list::{ImageList, ListedImages};
    use crate::loader::{EvalLoader, ImageViews, OnCorrupt, SampleIds, SampleStream, Workers};

    /// A file that opens but whose first byte is a device error: no page is mapped at address 0.
    const BAD: &str = "/proc/self/mem";

    /// The ids of images that were read, and the ids and errors of the others.
    type Loaded = (Vec<u64>, Vec<(u64, String)>);

    fn load(images: Vec<ListedImage>, patience: Duration) -> Result<Loaded, DataError> {
        let ids = SampleIds::from(0..images.len() as u64);
        let mut source = ListedImages::new(images, u32::MAX, 0);
        source.failing.patience = patience;
        let views = ImageViews::new(Arc::new(source), Arc::new(Augment::usb(4)));
        let workers =
            Workers { threads: NonZeroUsize::MIN, patience: Duration::from_secs(3), ..Workers::default() };
        let stream = SampleStream { ids, batch: 8 };
        let mut read = Vec::new();
        let mut bad = Vec::new();
        for batch in EvalLoader::new(views, stream, OnCorrupt::Skip { share: 1.0 }, workers)? {
            let batch = batch?;
            read.extend_from_slice(&batch.ids);
            bad.extend(batch.skipped.iter().map(|skipped| (skipped.id, skipped.problem.clone())));
        }
        Ok((read, bad))
    }

    #[test]
    fn bad_sector_skips_one_image() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["1.png", "2.png"].map(|name| folder.path().join(name));
        for path in &paths {
            fs::write(path, png(Pixels::Grey, [4, 4], |_| 7)).unwrap();
        }
        let [one, two] = paths;
        let list = || ImageList::of_paths(vec![one.clone(), BAD.into(), two.clone()]).collect::<Vec<_>>();
        let (read, bad) = load(list(), Duration::from_millis(500)).unwrap();
        assert_eq!(read, [0, 2]);
        assert_eq!(bad.len(), 1);
        let (id, problem) = &bad[0];
        assert!(*id == 1 && problem.contains(BAD) && problem.contains("nput/output error"), "{problem}");
        assert!(problem.contains("while other files can be read"), "{problem}");
        // Until the timeout, the loader keeps waiting for the storage.
        assert!(load(list(), Duration::from_mins(1)).is_err());
    }

    #[test]
    fn unavailable_storage_is_not_a_bad_sector() {
        let error = || DataError::new(BAD, std::io::Error::from_raw_os_error(5));
        let failing = FailingFiles { patience: Duration::ZERO, ..FailingFiles::default() };
        let alone: Vec<_> = ImageList::of_paths(vec![BAD.into()]).collect();
        assert!(
            !failing.classify(0, error(), &alone).is_transient(),
            "its folder has files that can be read"
        );
        let gone = ImagePlace::File("/unreadable/1.png".into());
        let away = [ListedImage { path: "1.png".into(), place: gone }];
        assert!(failing.classify(0, error(), &away).is_transient());
    }
}
