//! A source and a transform whose every byte follows from the sample, the seed and the epoch.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use calmix_core::rng::{Domain, Seed};
use calmix_data::augment::Scratch;
use calmix_data::error::DataError;
use calmix_data::loader::{ImageSource, Loader, Training, ViewKey, Views, Workers};
use calmix_formats::error::FormatProblem;
use calmix_formats::image::Image;

pub(crate) const SIDE: u32 = 32;
pub(crate) const SIZE: usize = (3 * SIDE * SIDE) as usize;

pub(crate) fn workers(threads: usize, prefetch: usize) -> Workers {
    Workers {
        threads: NonZeroUsize::new(threads).unwrap(),
        prefetch: NonZeroUsize::new(prefetch).unwrap(),
        ..Workers::default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Panic,
    Hang,
    NoLabel,
    Corrupt,
    Unreachable,
    /// Other bytes than were prepared.
    Changed,
    /// The storage is away when this many images were read before, for this many reads.
    Away(u64),
    /// The storage is away for good.
    Gone,
}

/// Images drawn from their id, read at random speeds and with faults where asked for.
#[derive(Debug, Default)]
pub(crate) struct Drawn {
    /// Sleeps 0 to 2 ms for a sample, by this seed.
    pub(crate) sleeps: Option<u64>,
    /// What is wrong with which sample.
    pub(crate) fault: Option<(u64, Fault)>,
    /// Every n-th sample is corrupt.
    pub(crate) corrupt_every: Option<u64>,
    /// How many images were read.
    pub(crate) read: AtomicU64,
}

impl Drawn {
    pub(crate) fn is_corrupt(&self, id: u64) -> bool {
        self.fault == Some((id, Fault::Corrupt)) || self.corrupt_every.is_some_and(|n| id.is_multiple_of(n))
    }
}

/// EIO, as a filer that restarts gives it.
fn away() -> DataError {
    DataError::new("train.bin", std::io::Error::from_raw_os_error(5))
}

pub(crate) fn drawn(id: u64) -> Vec<u8> {
    (0..SIZE as u64).map(|n| (id.wrapping_mul(167) + n * (id % 13 + 1)) as u8).collect()
}

impl ImageSource for Drawn {
    fn image(&self, id: u64) -> Result<Image, DataError> {
        let read = self.read.fetch_add(1, Ordering::Relaxed);
        if let Some(seed) = self.sleeps {
            let micros = Seed(seed).stream(Domain::Split, 0, id).below(2_000);
            std::thread::sleep(Duration::from_micros(micros));
        }
        match self.fault {
            Some((faulty, Fault::Panic)) if faulty == id => panic!("struck by lightning"),
            Some((faulty, Fault::Hang)) if faulty == id => std::thread::sleep(Duration::from_hours(1)),
            Some((from, Fault::Away(reads))) if (from..from + reads).contains(&read) => return Err(away()),
            Some((_, Fault::Gone)) => return Err(away()),
            Some((faulty, Fault::Changed)) if faulty == id => {
                return Err(DataError::new("train.bin", FormatProblem::Changed("another checksum".into())));
            }
            Some((faulty, Fault::Unreachable)) if faulty == id => {
                return Err(DataError::new("train.bin", std::io::Error::other("the disk is gone")));
            }
            _ => {}
        }
        if self.is_corrupt(id) {
            return Err(DataError::new("train.bin", FormatProblem::Format("not a JPEG".into())));
        }
        Ok(Image::new(SIDE, SIDE, drawn(id)).unwrap())
    }

    fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
        Ok((self.fault != Some((id, Fault::NoLabel))).then_some((id % 10) as u32))
    }
}

/// Starts a loader of tinted views.
pub(crate) fn start(
    source: impl ImageSource + 'static,
    training: Training,
    workers: Workers,
) -> Result<Loader, DataError> {
    Loader::new(Tinted::new(source), training, workers)
}

/// Views that add a tint drawn from the key.
pub(crate) struct Tinted(Box<dyn ImageSource>);

impl Tinted {
    pub(crate) fn new(source: impl ImageSource + 'static) -> Arc<Self> {
        Arc::new(Self(Box::new(source)))
    }

    fn image(&self, id: u64) -> Result<Image, DataError> {
        self.0.image(id).map_err(|error| DataError::Sample { id, error: Box::new(error) })
    }

    pub(crate) fn expected(id: u64, seed: Seed, epoch: u64, kind: u64) -> Vec<u8> {
        let tint = tint(ViewKey { seed, epoch, id }, kind);
        drawn(id).into_iter().map(|byte| byte.wrapping_add(tint)).collect()
    }
}

fn tint(key: ViewKey, kind: u64) -> u8 {
    let domain = if kind == 1 { Domain::Weak } else { Domain::Strong };
    key.seed.stream(domain, key.epoch, key.id).below(256) as u8
}

fn show(image: &Image, tint: u8, out: &mut [u8]) {
    out.iter_mut().zip(image.pixels()).for_each(|(out, byte)| *out = byte.wrapping_add(tint));
}

impl Views for Tinted {
    fn bytes(&self) -> usize {
        SIZE
    }

    fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
        self.0.label(id)
    }

    fn training(
        &self,
        key: ViewKey,
        _: &mut Scratch,
        weak: &mut [u8],
        strong: Option<&mut [u8]>,
    ) -> Result<(), DataError> {
        let image = self.image(key.id)?;
        show(&image, tint(key, 1), weak);
        if let Some(strong) = strong {
            show(&image, tint(key, 2), strong);
        }
        Ok(())
    }

    fn evaluation(&self, id: u64, _: &mut Scratch, out: &mut [u8]) -> Result<(), DataError> {
        show(&self.image(id)?, 0, out);
        Ok(())
    }
}
