//! A fit that has to stop looks for it in every block of rows and every iteration, wherever it is.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use calmix_core::matrix::Matrix;
use calmix_head::HeadError;
use calmix_head::gaussian_mixture::{GaussianMixture, gaussian_mixture};
use calmix_head::logistic_regression::{STRENGTHS, logistic_regression};
use calmix_head::progress::FitProgress;
use calmix_head::projection::Projection;
use calmix_head::sample_vectors::{SampleVectors, VectorRows};
use calmix_head::samples::{HeadSamples, TrainingRows};

/// Vectors that request a stop when so many of them have been read.
#[derive(Debug)]
struct StoppingRows {
    rows: usize,
    width: usize,
    read: AtomicUsize,
    last: usize,
    stop: AtomicBool,
}

impl VectorRows for StoppingRows {
    fn rows(&self) -> usize {
        self.rows
    }

    fn width(&self) -> usize {
        self.width
    }

    fn read(&self, row: usize, columns: Range<usize>, into: &mut Vec<f32>) -> Result<(), HeadError> {
        if self.read.fetch_add(1, Ordering::Relaxed) + 1 >= self.last {
            self.stop.store(true, Ordering::Relaxed);
        }
        into.extend(columns.map(|column| ((row * 31 + column * 7_919) % 101) as f32 / 101.0));
        Ok(())
    }

    fn first_non_finite(&self) -> Option<usize> {
        None
    }
}

/// Labels of so many classes in turn, for the first rows.
struct SampleTable {
    ids: Vec<u64>,
    labels: Vec<Option<u32>>,
    classes: Vec<String>,
}

impl SampleTable {
    fn new(rows: usize, labelled: usize, classes: u32) -> Self {
        let label = |row: usize| (row < labelled).then(|| row as u32 % classes);
        Self {
            ids: (0..rows as u64).collect(),
            labels: (0..rows).map(label).collect(),
            classes: (0..classes).map(|class| class.to_string()).collect(),
        }
    }

    fn samples<'a>(&'a self, vectors: SampleVectors<'a>) -> HeadSamples<'a> {
        HeadSamples {
            ids: &self.ids,
            vectors,
            weak: 0,
            strong: 0,
            labels: &self.labels,
            classes: &self.classes,
            groups: &[],
            chosen: &[],
            weights: &[],
        }
    }
}

#[test]
fn mixture_stops_within_a_block_of_rows() {
    let rows = 6_000;
    let labels = SampleTable::new(rows, 100, 4);
    let training = TrainingRows { labelled: (0..100).collect(), unlabelled: (100..rows).collect() };
    // In the moments of the labels and of the others, in the first expectation, and in the second one.
    for last in [50, 1_000, 7_000, 20_000] {
        let vectors =
            StoppingRows { rows, width: 8, read: AtomicUsize::new(0), last, stop: AtomicBool::new(false) };
        let samples = labels.samples(SampleVectors::External(&vectors));
        for settings in [GaussianMixture::PLAIN, GaussianMixture::BALANCED] {
            vectors.read.store(0, Ordering::Relaxed);
            vectors.stop.store(false, Ordering::Relaxed);
            let fitted = gaussian_mixture(samples, &training, settings, &FitProgress::new(&vectors.stop));
            assert!(matches!(fitted, Err(HeadError::Stopped)), "{last}");
            let read = vectors.read.load(Ordering::Relaxed);
            assert!(read <= last + 256, "{} after the stop", read - last);
        }
    }
}

/// One strength takes half a minute here, in hundreds of iterations.
#[test]
fn logistic_regression_stops_within_an_iteration() {
    let (rows, width) = (2_000, 32);
    let labels = SampleTable::new(rows, rows, 500);
    let numbers: Vec<f32> =
        (0..rows * width).map(|n| ((n * 7_919 + n / width) % 1_009) as f32 / 1_009.0).collect();
    let samples = labels.samples(Matrix::new(&numbers, rows, width).expect("rows").into());
    let training = TrainingRows { labelled: (0..rows).collect(), unlabelled: Vec::new() };
    let stop = AtomicBool::new(false);
    let progress = FitProgress::new(&stop);
    let ended = thread::scope(|scope| {
        // An exact fit, so that it is not at its end before.
        let fitting = scope.spawn(|| logistic_regression(samples, &training, &STRENGTHS, 0.0, &progress));
        // Whenever it comes, it has to be noticed; by then the fit is in its first iterations.
        thread::sleep(Duration::from_millis(300));
        let sent = Instant::now();
        stop.store(true, Ordering::Relaxed);
        let fitted = fitting.join().expect("no panic");
        assert!(matches!(fitted, Err(HeadError::Stopped)));
        sent.elapsed()
    });
    assert!(ended < Duration::from_secs(5), "{ended:?}");
}

#[test]
fn projection_stops() {
    let numbers: Vec<f32> = (0..600).map(|n| (n * n % 17) as f32).collect();
    let rows = Matrix::new(&numbers, 30, 20).expect("rows");
    let stopped = Projection::fit_unless(rows, &[], 5, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(HeadError::Stopped)));
}
