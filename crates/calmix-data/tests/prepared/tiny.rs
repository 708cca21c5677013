//! Datasets of a few bytes.

use std::fs;
use std::path::PathBuf;

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::manifest::{Encoding, ManifestBuilder, PixelLayout};
use serde_json::Value;
use tempfile::TempDir;

/// Images of one grey pixel.
pub(crate) const PIXEL: Encoding = Encoding::Raw { width: 1, height: 1, layout: PixelLayout::Grey };

/// A subset by name, with the content and the label of each sample.
pub(crate) type Subset<'a> = (&'a str, &'a [(u8, Option<u32>)]);

/// A dataset in a folder of its own.
pub(crate) struct Tiny {
    pub(crate) root: TempDir,
}

impl Tiny {
    /// Prepares one-pixel samples, one part for each subset.
    pub(crate) fn new(classes: &[&str], subsets: &[Subset]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let classes = classes.iter().map(ToString::to_string).collect();
        let mut builder = ManifestBuilder::new(&root.path().join("prepared"), classes, PIXEL).unwrap();
        for (name, samples) in subsets {
            let bytes: Vec<u8> = samples.iter().map(|(byte, _)| *byte).collect();
            fs::write(root.path().join(name), &bytes).unwrap();
            builder.subset(name);
            let part = builder.part(name, bytes.len() as u64).unwrap();
            for (offset, (byte, label)) in samples.iter().enumerate() {
                builder.sample(part, offset as u64, &[*byte], *label).unwrap();
            }
        }
        builder.finish().unwrap();
        Self { root }
    }

    /// A subset `train` in which class c has `counts[c]` samples, the classes taking turns.
    pub(crate) fn with_counts(names: &[&str], counts: &[usize]) -> Self {
        let rounds = counts.iter().copied().max().unwrap_or(0);
        let turns =
            (0..rounds).flat_map(|round| (0..counts.len()).filter(move |&class| round < counts[class]));
        let samples: Vec<(u8, Option<u32>)> =
            turns.enumerate().map(|(id, class)| (id as u8, Some(class as u32))).collect();
        Self::new(names, &[("train", &samples)])
    }

    pub(crate) fn open(&self) -> Dataset {
        self.try_open().unwrap()
    }

    pub(crate) fn try_open(&self) -> Result<Dataset, DataError> {
        Dataset::open(&self.prepared(), self.root.path())
    }

    /// Why the dataset cannot be opened.
    pub(crate) fn refusal(&self) -> String {
        self.try_open().unwrap_err().to_string()
    }

    pub(crate) fn prepared(&self) -> PathBuf {
        self.root.path().join("prepared")
    }

    pub(crate) fn header(&self) -> Value {
        serde_json::from_slice(&fs::read(self.file("manifest.json")).unwrap()).unwrap()
    }

    pub(crate) fn write_header(&self, header: &Value) {
        fs::write(self.file("manifest.json"), header.to_string()).unwrap();
    }

    /// Changes the table of samples, and writes its new hash into the header.
    pub(crate) fn change_samples(&self, change: impl FnOnce(&mut [u8])) {
        let mut table = fs::read(self.file("samples.bin")).unwrap();
        change(&mut table);
        fs::write(self.file("samples.bin"), table).unwrap();
        self.rehash();
    }

    /// Writes the hashes of the tables as they are now into the header.
    pub(crate) fn rehash(&self) {
        let mut header = self.header();
        for table in ["samples", "parts", "names"] {
            let bytes = fs::read(self.file(&format!("{table}.bin"))).unwrap();
            header["tables"][table] = blake3::hash(&bytes).to_hex().as_str().into();
        }
        self.write_header(&header);
    }

    /// A file of the prepared folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.prepared().join(name)
    }
}
