//! STL-10 in its binary version: 5,000 labelled training images, 8,000 test images, 100,000 unlabelled images.
//!
//! Images are 27,648 bytes: a red, a green and a blue plane of 96×96, each column by column; labels are one
//! byte, from 1. <https://cs.stanford.edu/~acoates/stl10/>

use std::path::Path;

use calmix_formats::source_dir::{Count, SourceDir, SourceFile};

use super::names::{self, STL10};
use crate::error::DataError;
use crate::manifest::{Encoding, ManifestBuilder, PixelLayout, Prepared};

const PIXELS: usize = 96 * 96 * 3;
const FOLDER: &str = "stl10_binary";
const REQUIRED: [&str; 4] = ["train_X.bin", "train_y.bin", "test_X.bin", "test_y.bin"];
const UNLABELLED: &str = "unlabeled_X.bin";

/// Prepares the files in `root`, or in the archive's folder inside it, as subsets `train`, `test` and, if it is
/// there, `unlabelled`.
///
/// # Errors
/// If a file is missing or not as long as it should be, a label is not a class, or `target` cannot be written.
pub fn prepare(root: &Path, target: &Path, count: Count) -> Result<Prepared, DataError> {
    let dir = SourceDir::find(root, &[FOLDER], &REQUIRED)?;
    dir.require(&REQUIRED)?;
    let classes = names::classes(&dir, "class_names.txt", &STL10)?;
    let open = |name: &str, official: u64| {
        let opened = dir.open(name)?;
        let samples = opened.records(PIXELS as u64, count, official)?;
        Ok::<_, DataError>((opened, samples))
    };
    let labelled = |images: &str, labels: &str, official: u64| {
        let (images, samples) = open(images, official)?;
        let labels = dir.open(labels)?;
        labels.records(1, Count::Official, samples)?;
        Ok::<_, DataError>((images, samples, labels))
    };
    let train = labelled("train_X.bin", "train_y.bin", 5_000)?;
    let test = labelled("test_X.bin", "test_y.bin", 8_000)?;
    let unlabelled = dir.has(UNLABELLED).then(|| open(UNLABELLED, 100_000)).transpose()?;

    let encoding = Encoding::Raw { width: 96, height: 96, layout: PixelLayout::PlanesByColumn };
    let mut builder = ManifestBuilder::new(target, classes, encoding)?;
    for (subset, (images, samples, labels)) in [("train", train), ("test", test)] {
        builder.subset(subset);
        add(&mut builder, images, samples, Some(labels))?;
    }
    if let Some((images, samples)) = unlabelled {
        builder.subset("unlabelled");
        add(&mut builder, images, samples, None)?;
    }
    builder.finish()
}

fn add(
    builder: &mut ManifestBuilder,
    mut images: SourceFile,
    samples: u64,
    mut labels: Option<SourceFile>,
) -> Result<(), DataError> {
    let part = builder.part(&images.relative, images.length)?;
    let mut pixels = vec![0; PIXELS];
    for _ in 0..samples {
        let mut label = None;
        if let Some(labels) = &mut labels {
            let mut byte = [0];
            labels.read(&mut byte)?;
            label = Some(labels.label(byte[0], 1, STL10.len())?);
        }
        let offset = images.position;
        images.read(&mut pixels)?;
        builder.sample(part, offset, &pixels, label)?;
    }
    Ok(())
}
