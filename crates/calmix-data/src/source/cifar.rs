//! CIFAR-10 and CIFAR-100 in their binary version (the Python version is a pickle, which can run code).
//!
//! A record is one label byte (CIFAR-100: the coarse, then the fine one) and 3,072 bytes: a red, a green and a
//! blue plane of 32×32, row by row. <https://www.cs.toronto.edu/~kriz/cifar.html>

use std::path::Path;

use calmix_formats::source_dir::{Count, SourceDir, SourceFile};

use super::names::{self, CIFAR10, CIFAR100_COARSE, CIFAR100_FINE};
use crate::error::DataError;
use crate::manifest::{Encoding, ManifestBuilder, PixelLayout, Prepared};

const PIXELS: usize = 32 * 32 * 3;

/// The dataset and, for CIFAR-100, its kind of label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    Cifar10,
    /// CIFAR-100 with its hundred classes.
    Cifar100Fine,
    /// CIFAR-100 with its twenty superclasses.
    Cifar100Coarse,
}

/// The files of a variant.
struct CifarFiles {
    folder: &'static str,
    train: &'static [&'static str],
    test: &'static str,
    /// Samples in each training file and in the test file.
    official: (u64, u64),
    /// The number of classes of each label byte.
    labels: &'static [usize],
    /// The index of the label byte that gives the class.
    chosen: usize,
    names: &'static str,
    published: &'static [&'static str],
}

impl Variant {
    fn files(self) -> CifarFiles {
        let ten = CifarFiles {
            folder: "cifar-10-batches-bin",
            train: &[
                "data_batch_1.bin",
                "data_batch_2.bin",
                "data_batch_3.bin",
                "data_batch_4.bin",
                "data_batch_5.bin",
            ],
            test: "test_batch.bin",
            official: (10_000, 10_000),
            labels: &[10],
            chosen: 0,
            names: "batches.meta.txt",
            published: &CIFAR10,
        };
        let hundred = CifarFiles {
            folder: "cifar-100-binary",
            train: &["train.bin"],
            test: "test.bin",
            official: (50_000, 10_000),
            labels: &[20, 100],
            chosen: 1,
            names: "fine_label_names.txt",
            published: &CIFAR100_FINE,
        };
        match self {
            Self::Cifar10 => ten,
            Self::Cifar100Fine => hundred,
            Self::Cifar100Coarse => CifarFiles {
                chosen: 0,
                names: "coarse_label_names.txt",
                published: &CIFAR100_COARSE,
                ..hundred
            },
        }
    }
}

/// Prepares the files in `root`, or in the archive's folder inside it, as subsets `train` and `test`.
///
/// # Errors
/// If a file is missing or not as long as it should be, a label is not a class, or `target` cannot be written.
pub fn prepare(root: &Path, target: &Path, variant: Variant, count: Count) -> Result<Prepared, DataError> {
    let files = variant.files();
    let all: Vec<&str> = files.train.iter().copied().chain([files.test]).collect();
    let dir = SourceDir::find(root, &[files.folder], &all)?;
    dir.require(&all)?;
    let classes = names::classes(&dir, files.names, files.published)?;
    let record = (files.labels.len() + PIXELS) as u64;
    let open = |name: &str, official: u64| {
        let opened = dir.open(name)?;
        let samples = opened.records(record, count, official)?;
        Ok::<_, DataError>((opened, samples))
    };
    // All lengths are checked before the first byte is read.
    let train = files.train.iter().map(|name| open(name, files.official.0)).collect::<Result<Vec<_>, _>>()?;
    let test = open(files.test, files.official.1)?;

    let encoding = Encoding::Raw { width: 32, height: 32, layout: PixelLayout::Planes };
    let mut builder = ManifestBuilder::new(target, classes, encoding)?;
    builder.subset("train");
    for (opened, samples) in train {
        add(&mut builder, opened, samples, &files)?;
    }
    builder.subset("test");
    add(&mut builder, test.0, test.1, &files)?;
    builder.finish()
}

fn add(
    builder: &mut ManifestBuilder,
    mut opened: SourceFile,
    samples: u64,
    files: &CifarFiles,
) -> Result<(), DataError> {
    let part = builder.part(&opened.relative, opened.length)?;
    let mut pixels = [0; PIXELS];
    for _ in 0..samples {
        let mut class = None;
        for (index, &classes) in files.labels.iter().enumerate() {
            let mut label = [0];
            opened.read(&mut label)?;
            let label = opened.label(label[0], 0, classes)?;
            class = class.or((index == files.chosen).then_some(label));
        }
        let offset = opened.position;
        opened.read(&mut pixels)?;
        builder.sample(part, offset, &pixels, class)?;
    }
    Ok(())
}
