//! From a prepared dataset to batches.

use std::fs;
use std::sync::Arc;

use calmix_core::rng::Seed;
use calmix_data::augment::{Augment, Scratch};
use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::loader::{
    EvalLoader, ImageSource, ImageViews, InMemory, Loader, OnCorrupt, SampleStream, TrainBatch, Training,
    labelled_view_seed,
};
use calmix_data::manifest::{Encoding, ManifestBuilder, PixelLayout};
use calmix_data::split::{LabelSplit, Rule, SplitPlan};
use tempfile::TempDir;

use super::fixtures::{SIDE, SIZE, drawn, workers};

const SAMPLES: u64 = 120;

/// 100 samples to train on and 20 to test on, of four classes, as planes in one file.
fn prepared() -> (TempDir, Dataset) {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..SAMPLES).flat_map(drawn).collect();
    fs::write(folder.path().join("all.bin"), &bytes).unwrap();
    let encoding = Encoding::Raw { width: SIDE, height: SIDE, layout: PixelLayout::Planes };
    let classes = ["ant", "bee", "cat", "dog"].map(str::to_owned).to_vec();
    let target = folder.path().join("prepared");
    let mut builder = ManifestBuilder::new(&target, classes, encoding).unwrap();
    let part = builder.part("all.bin", bytes.len() as u64).unwrap();
    for (id, sample) in (0..).zip(bytes.chunks(SIZE)) {
        match id {
            0 => builder.subset("train"),
            100 => builder.subset("test"),
            _ => {}
        }
        builder.sample(part, id * SIZE as u64, sample, Some((id % 4) as u32)).unwrap();
    }
    builder.finish().unwrap();
    let dataset = Dataset::open(&target, folder.path()).unwrap();
    (folder, dataset)
}

fn training(dataset: &Dataset, steps: std::ops::Range<u64>) -> Training {
    let plan = SplitPlan { rule: Rule::PerClass { labels: 5 }, ..SplitPlan::new(Seed(1), "train") };
    let split = LabelSplit::draw(dataset, plan).unwrap();
    Training {
        labelled: SampleStream { ids: split.labelled().into(), batch: 4 },
        unlabelled: SampleStream { ids: split.unlabelled(dataset).unwrap().into(), batch: 28 },
        ..Training::new(Seed(2), steps)
    }
}

fn load(
    source: Arc<dyn ImageSource>,
    training: Training,
    threads: usize,
) -> Result<Vec<TrainBatch>, DataError> {
    let loader =
        Loader::new(ImageViews::new(source, Arc::new(Augment::usb(SIDE))), training, workers(threads, 2))?;
    loader.map(|batch| batch.map(calmix_data::loader::PooledBatch::into_inner)).collect()
}

#[test]
fn batches_show_the_views_of_the_samples_they_name() {
    let (_folder, dataset) = prepared();
    let training = training(&dataset, 0..12);
    let dataset = Arc::new(dataset);
    let batches = load(Arc::clone(&dataset) as _, training.clone(), 2).unwrap();
    let (augment, mut scratch, mut view) = (Augment::usb(SIDE), Scratch::default(), vec![0; SIZE]);
    for batch in &batches {
        for (row, pixels) in batch.labelled.pixels.chunks(SIZE).enumerate() {
            let (id, epoch) = (batch.labelled.ids[row], batch.labelled.epochs[row]);
            let image = dataset.image(id).unwrap();
            augment.weak(&image, labelled_view_seed(Seed(2)), epoch, id, &mut scratch, &mut view).unwrap();
            assert_eq!((pixels, Some(batch.labelled.labels[row])), (&view[..], dataset.label(id).unwrap()));
        }
        let views = batch.unlabelled.weak.chunks(SIZE).zip(batch.unlabelled.strong.chunks(SIZE));
        for (row, (weak, strong)) in views.enumerate() {
            let (id, epoch) = (batch.unlabelled.ids[row], batch.unlabelled.epochs[row]);
            let image = dataset.image(id).unwrap();
            augment.weak(&image, Seed(2), epoch, id, &mut scratch, &mut view).unwrap();
            assert_eq!(weak, view);
            augment.strong(&image, Seed(2), epoch, id, &mut scratch, &mut view).unwrap();
            assert_eq!(strong, view);
        }
    }
    assert_eq!(load(dataset, training, 4).unwrap(), batches);
}

#[test]
fn a_dataset_in_memory_makes_the_same_batches() {
    let (folder, dataset) = prepared();
    let training = training(&dataset, 3..9);
    let again = Dataset::open(&folder.path().join("prepared"), folder.path()).unwrap();
    let memory = InMemory::new(again, 1 << 20);
    let from_disk = load(Arc::new(dataset), training.clone(), 2).unwrap();
    assert_eq!(load(Arc::new(memory), training, 2).unwrap(), from_disk);
}

#[test]
fn evaluation_reads_the_test_set_in_order() {
    let (_folder, dataset) = prepared();
    let stream = SampleStream { ids: dataset.subset("test").unwrap().into(), batch: 8 };
    let dataset = Arc::new(dataset);
    let views = Arc::new(Augment::usb(SIDE));
    let evaluation = EvalLoader::new(
        ImageViews::new(Arc::clone(&dataset) as _, views),
        stream,
        OnCorrupt::Stop,
        workers(2, 2),
    )
    .unwrap();
    let mut ids = 100..120;
    for batch in evaluation.map(Result::unwrap) {
        for (row, pixels) in batch.pixels.chunks(SIZE).enumerate() {
            let id = ids.next().unwrap();
            assert_eq!((batch.ids[row], batch.labels[row]), (id, Some((id % 4) as u32)));
            assert_eq!(pixels, dataset.image(id).unwrap().pixels());
        }
    }
    assert!(ids.is_empty());
}

/// Whatever becomes of corrupt samples: this one is another than when the dataset was prepared.
#[test]
fn a_sample_that_changed_on_disk_stops_the_loader_and_is_named() {
    let (folder, dataset) = prepared();
    let path = folder.path().join("all.bin");
    let mut bytes = fs::read(&path).unwrap();
    bytes[50 * SIZE + 7] ^= 1;
    fs::write(&path, bytes).unwrap();
    let dataset = Arc::new(dataset);
    for corrupt in [OnCorrupt::Skip { share: 1.0 }, OnCorrupt::Stop] {
        let training = Training { corrupt, ..training(&dataset, 0..8) };
        let error = load(Arc::clone(&dataset) as _, training, 2).unwrap_err().to_string();
        assert!(error.starts_with("sample 50: ") && error.contains("all.bin"), "{error}");
        assert!(error.ends_with("when prepared; prepare the dataset again"), "{error}");
    }
}
