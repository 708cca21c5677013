//! A folder of files for one test.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

use calmix_data::error::DataError;
use calmix_data::manifest::Prepared;
use calmix_data::manifest::{NO_LABEL, SampleRecord};
use calmix_testkit::photos::{self, Golden};

pub struct Scene {
    folder: tempfile::TempDir,
    image: Vec<u8>,
}

impl Scene {
    pub fn new() -> Self {
        let image = Golden::load().image("png-rgb-one").to_vec();
        let scene = Self { folder: tempfile::tempdir().unwrap(), image };
        fs::create_dir(scene.root()).unwrap();
        scene
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub fn target(&self) -> PathBuf {
        self.folder.path().join("prepared")
    }

    pub fn outside(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> &Self {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    /// An image whose bytes contain its name: no two are equal.
    pub fn image(&self, name: &str) -> &Self {
        self.file(name, &self.bytes_of(name))
    }

    pub fn bytes_of(&self, name: &str) -> Vec<u8> {
        // A chunk of text before the last chunk, which has twelve bytes.
        let chunk = [b"teXt", name.as_bytes()].concat();
        let (image, end) = self.image.split_at(self.image.len() - 12);
        let length = (name.len() as u32).to_be_bytes();
        let sum = photos::crc32(&chunk).to_be_bytes();
        [image, &length, &chunk, &sum, end].concat()
    }

    /// Part and label of every sample.
    pub fn samples(&self) -> Vec<(String, Option<u32>)> {
        let names = fs::read(self.target().join("names.bin")).unwrap();
        let parts = fs::read(self.target().join("parts.bin")).unwrap();
        let part = |number: u32| {
            let record = &parts[number as usize * 24..];
            let at = u64::from_le_bytes(record[..8].try_into().unwrap()) as usize;
            let length = u32::from_le_bytes(record[8..12].try_into().unwrap()) as usize;
            String::from_utf8(names[at..at + length].to_vec()).unwrap()
        };
        let label = |label| (label != NO_LABEL).then_some(label);
        self.records().iter().map(|record| (part(record.part), label(record.label))).collect()
    }

    pub fn records(&self) -> Vec<SampleRecord> {
        let samples = fs::read(self.target().join("samples.bin")).unwrap();
        samples.as_chunks::<24>().0.iter().map(|record| SampleRecord::from_bytes(*record)).collect()
    }

    /// The sentence, without the path of the temporary folder.
    pub fn sentence(&self, error: &DataError) -> String {
        error.to_string().replace(&format!("{}/", self.root().display()), "").replace('\\', "/")
    }

    pub fn refusal(&self, result: Result<Prepared, DataError>) -> String {
        let error = result.expect_err("an error");
        assert!(!self.target().exists(), "nothing may stand at the target after an error");
        self.sentence(&error)
    }

    /// Expects an error whose sentence contains `part`.
    pub fn refuses(&self, result: Result<Prepared, DataError>, part: &str) {
        let sentence = self.refusal(result);
        assert!(sentence.contains(part), "{sentence}");
    }

    /// The sentences about files that were left out.
    pub fn left_out(&self, prepared: &Prepared) -> Vec<String> {
        prepared.unreadable.iter().map(|error| self.sentence(error)).collect()
    }

    /// The class of every sample.
    pub fn labels(&self) -> Vec<Option<u32>> {
        self.samples().into_iter().map(|(_, label)| label).collect()
    }
}

/// Subsets as `name first count`.
pub fn subsets(prepared: &Prepared) -> Vec<String> {
    let subsets = prepared.header.subsets.iter();
    subsets.map(|subset| format!("{} {} {}", subset.name, subset.first, subset.count)).collect()
}
