//! The self-test: a short training on synthetic images, twice.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use calmix::data::prepare::prepare;
use calmix::lifecycle::request::RunRequest;
use calmix::recipe::{Data, Layers, SourceName};
use calmix::run::checkpoint::newest;
use calmix::run::error::RunError;
use calmix::run::events::Pace;
use calmix::run::run::Paths;
use calmix::run::sink::Sink;
use calmix_train::trainer::Trainer;

/// The result of the self-test.
#[derive(Debug)]
pub(super) struct SelfTest {
    pub(super) steps: u64,
    pub(super) images_per_second: f64,
    pub(super) waiting: f64,
    /// Whether both trainings gave the same bytes.
    pub(super) same: bool,
}

impl SelfTest {
    /// Trains for half of the time, then for the same number of steps again, and compares the results.
    pub(super) fn run(threads: u32, seconds: u16) -> Result<Self> {
        let temp = tempfile::tempdir()?;
        let images = temp.path().join("images");
        write_images(&images)?;
        let prepared = temp.path().join("prepared");
        prepare(
            &Data { source: SourceName::FashionMnist, ..Data::default() }.source_spec(),
            &images,
            &prepared,
        )?;
        let half = Duration::from_secs(seconds.into()) / 2;
        let first = temp.path().join("first");
        let stopped = train(&temp, &first, threads, |_, elapsed| elapsed >= half)?;
        let last = stopped.step;
        let second = temp.path().join("second");
        train(&temp, &second, threads, |step, _| step >= last)?;
        Ok(Self {
            steps: last,
            images_per_second: stopped.images_per_second,
            waiting: stopped.waiting,
            same: hash(&first)? == hash(&second)?,
        })
    }
}

/// Trains until `is_over`; returns the pace of the whole run.
fn train(
    temp: &tempfile::TempDir,
    run: &Path,
    threads: u32,
    is_over: impl Fn(u64, Duration) -> bool,
) -> Result<Pace> {
    let settings = [
        format!("dataset.path={}", temp.path().join("images").display()),
        format!("dataset.prepared={}", temp.path().join("prepared").display()),
        format!("train.threads={threads}"),
        "train.steps=1000000".to_owned(),
        "evaluate.every=1000000".to_owned(),
        "checkpoint.every=1000000".to_owned(),
        "log.every=1".to_owned(),
    ];
    let layers =
        settings.iter().fold(Layers::new().recipe("cpu-fashion-mnist"), |layers, set| layers.set(set));
    let stop = AtomicBool::new(false);
    let mut total = PaceTotal { stop: &stop, is_over, began: None, images: 0.0, waited: 0.0, last: None };
    Trainer::new(RunRequest::new(&stop).sink(&mut total)).start(&layers.resolve()?, run)?;
    let (began, last) = (total.began, total.last.context("the self-test completed no step")?);
    let trained = began.map_or(0.0, |began| last.elapsed_seconds - began).max(f64::MIN_POSITIVE);
    Ok(Pace { images_per_second: total.images / trained, waiting: total.waited / trained, ..last })
}

/// The pace of a run without its first step, in which libtorch warms up.
struct PaceTotal<'a, F> {
    stop: &'a AtomicBool,
    is_over: F,
    began: Option<f64>,
    images: f64,
    waited: f64,
    last: Option<Pace>,
}

impl<F: Fn(u64, Duration) -> bool> Sink for &mut PaceTotal<'_, F> {
    fn pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        if let Some(before) = &self.last {
            let seconds = pace.elapsed_seconds - before.elapsed_seconds;
            self.images += pace.images_per_second * seconds;
            self.waited += pace.waiting * seconds;
        } else {
            self.began = Some(pace.elapsed_seconds);
        }
        self.last = Some(*pace);
        if (self.is_over)(pace.step, Duration::from_secs_f64(pace.elapsed_seconds)) {
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Returns the hash of the newest checkpoint, which covers every byte of the state.
fn hash(run: &Path) -> Result<String> {
    let found = newest(Paths::new(run).checkpoints())?.context("the self-test saved no checkpoint")?;
    Ok(found.checkpoint.hash().to_owned())
}

/// Writes images in the format of Fashion-MNIST: stripes whose width is the class.
fn write_images(folder: &Path) -> Result<()> {
    const SIDE: u32 = 28;
    fs::create_dir(folder)?;
    for (name, count) in [("train", 1000_u32), ("t10k", 100)] {
        let header = |kind: u8, sides: &[u32]| {
            let sides = [&[count], sides].concat();
            [vec![0, 0, 8, kind], sides.iter().flat_map(|side| side.to_be_bytes()).collect()].concat()
        };
        let pixel = |image: u32, place: u32| {
            let stripe = (place % SIDE + image / 10) / (image % 10 + 1) % 2;
            (stripe * 200 + image.wrapping_mul(2_654_435_761).wrapping_add(place * 40_503) % 56) as u8
        };
        let pixels = (0..count).flat_map(|image| (0..SIDE * SIDE).map(move |place| pixel(image, place)));
        let images = [header(3, &[SIDE, SIDE]), pixels.collect()].concat();
        let labels = [header(1, &[]), (0..count).map(|image| (image % 10) as u8).collect()].concat();
        fs::write(folder.join(format!("{name}-images-idx3-ubyte")), images)?;
        fs::write(folder.join(format!("{name}-labels-idx1-ubyte")), labels)?;
    }
    Ok(())
}
