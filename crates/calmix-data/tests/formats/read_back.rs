//! A prepared dataset read back by the letter of its description, independently of the library's reader.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use calmix_data::manifest::{DatasetPart, Encoding, Header, NO_LABEL, SampleRecord};
use calmix_formats::image::Image;
use calmix_testkit::dataset_files::Mat;
use tempfile::TempDir;

/// A folder of SVHN with these bytes as training file, and one image of label 4 to test on.
pub(crate) fn svhn_folder(train: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let test = Mat::LITTLE.file(&[Mat::LITTLE.labels(&[4]), Mat::LITTLE.images(1)]);
    for (name, bytes) in [("train", train), ("test", &test)] {
        fs::write(folder.path().join(format!("{name}_32x32.mat")), bytes).unwrap();
    }
    folder
}

pub(crate) struct ReadBack {
    pub(crate) header: Header,
    pub(crate) parts: Vec<DatasetPart>,
    records: Vec<SampleRecord>,
    files: Vec<File>,
}

impl ReadBack {
    pub(crate) fn open(root: &Path, target: &Path) -> Self {
        let header: Header =
            serde_json::from_slice(&fs::read(target.join("manifest.json")).unwrap()).unwrap();
        let samples = fs::read(target.join("samples.bin")).unwrap();
        let records = samples.as_chunks().0.iter().copied().map(SampleRecord::from_bytes).collect::<Vec<_>>();
        assert_eq!(records.len() as u64, header.samples);
        let names = fs::read(target.join("names.bin")).unwrap();
        let table = fs::read(target.join("parts.bin")).unwrap();
        let u64_at = |row: &[u8], at: usize| u64::from_le_bytes(row[at..at + 8].try_into().unwrap());
        let u32_at = |row: &[u8], at: usize| u32::from_le_bytes(row[at..at + 4].try_into().unwrap());
        let parts: Vec<DatasetPart> = table
            .chunks_exact(24)
            .map(|row| {
                let start = u64_at(row, 0) as usize;
                let path = names[start..start + u32_at(row, 8) as usize].to_vec();
                let path = String::from_utf8(path).unwrap();
                DatasetPart { path, unpacked: u32_at(row, 12) == 1, shrunk: false, length: u64_at(row, 16) }
            })
            .collect();
        assert_eq!(parts.len(), header.parts as usize);
        let files = parts
            .iter()
            .map(|part| {
                let file = File::open(if part.unpacked { target } else { root }.join(&part.path)).unwrap();
                assert_eq!(file.metadata().unwrap().len(), part.length);
                file
            })
            .collect();
        Self { header, parts, records, files }
    }

    pub(crate) fn label(&self, id: usize) -> Option<u32> {
        Some(self.records[id].label).filter(|&label| label != NO_LABEL)
    }

    pub(crate) fn image(&self, id: usize) -> Image {
        let record = self.records[id];
        let mut bytes = vec![0; record.length as usize];
        self.files[record.part as usize].read_exact_at(&mut bytes, record.offset).unwrap();
        assert_eq!(crc32c::crc32c(&bytes), record.checksum);
        let Encoding::Raw { width, height, layout } = self.header.encoding else {
            panic!("these sources are raw");
        };
        layout.image(width, height, &bytes).unwrap()
    }

    /// Name, first id and count of each subset.
    pub(crate) fn subsets(&self) -> Vec<(&str, u64, u64)> {
        self.header.subsets.iter().map(|subset| (subset.name.as_str(), subset.first, subset.count)).collect()
    }
}
