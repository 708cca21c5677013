//! The same vectors and labels, written by NumPy, PyTorch, pyarrow, Hugging Face's datasets and Python's csv, are the same dataset.

use std::path::{Path, PathBuf};

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::manifest::Encoding;
use calmix_data::prepare::{SourceStamp, prepare};
use calmix_data::source::SourceSpec;
use calmix_formats::labels::columns::LabelColumns;
use calmix_formats::vectors::{VectorBlock, VectorOptions, VectorSource};

pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../calmix-formats/tests/golden/vectors").join(name)
}

pub(crate) fn spec(labels: Option<&Path>) -> SourceSpec {
    let labels = labels.map(|labels| labels.to_str().unwrap().to_owned());
    SourceSpec::Vectors {
        labels,
        more_features: Vec::new(),
        vector_column: None,
        columns: LabelColumns::default(),
    }
}

/// Prepares vectors and opens the dataset.
pub(crate) fn prepared(
    root: &Path,
    labels: Option<&Path>,
    target: &Path,
) -> Result<(Dataset, Vec<String>), DataError> {
    let report = prepare(&spec(labels), root, target)?;
    let warnings = report.warnings.iter().map(ToString::to_string).collect();
    Ok((Dataset::open(target, root)?, warnings))
}

/// The number in a row and column, as `vectors.py` writes it.
fn number(row: u64, column: u64) -> f32 {
    (f32::from(u8::try_from((row * 37 + column * 101) % 255).unwrap()) - 127.0) / 8.0
}

fn label(row: u64) -> Option<&'static str> {
    (row % 7 != 3).then(|| ["10", "2", "30", "4", "5"][(row % 5) as usize])
}

#[test]
fn every_format_gives_the_same_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let labels = golden("labels.npy");
    let files = "f2.npy f4.npy f8.npy stored.npz deflated.npz f16.safetensors bf16.safetensors f32.safetensors \
                 f64.safetensors snappy.parquet zstd.parquet nested.parquet datasets.parquet parts clip lightly.csv";
    let mut fingerprints = Vec::new();
    for name in files.split(' ') {
        let is_npy = Path::new(name).extension().is_some_and(|extension| extension == "npy");
        let labels = is_npy.then_some(labels.as_path());
        let target = folder.path().join(name);
        let (dataset, warnings) = prepared(&golden(name), labels, &target).unwrap();
        assert!(warnings.is_empty(), "{name}: {warnings:?}");
        assert_eq!(dataset.classes(), ["2", "4", "5", "10", "30"], "{name}");
        assert!(matches!(dataset.header().encoding, Encoding::Vectors { width: 8, views: 1, .. }));
        let mut ids = dataset.subset("train").unwrap();
        let (labelled, unlabelled): (Vec<_>, Vec<_>) = (0..50).partition(|&row| label(row).is_some());
        for row in labelled.into_iter().chain(unlabelled) {
            if ids.is_empty() {
                ids = dataset.subset("unlabelled").unwrap();
            }
            let id = ids.next().unwrap();
            let mut numbers = Vec::new();
            dataset.vector(id, &mut numbers).unwrap();
            let expected: Vec<f32> = (0..8).map(|column| number(row, column)).collect();
            assert_eq!(numbers, expected, "{name}, row {row}");
            let class = dataset.label(id).unwrap().map(|class| dataset.classes()[class as usize].as_str());
            assert_eq!(class, label(row), "{name}, row {row}");
            let expected = match name {
                "parts" if row < 7 => format!("a.parquet[{row}]"),
                "parts" => format!("c.parquet[{}]", row - 7),
                "clip" if row < 20 => format!("img_emb/img_emb_2.npy[{row}]"),
                "clip" => format!("img_emb/img_emb_10.npy[{}]", row - 20),
                name => format!("{name}[{row}]"),
            };
            assert_eq!(dataset.sample_name(id).unwrap(), expected);
        }
        assert!(ids.is_empty());
        dataset.verify().unwrap();
        assert!(dataset.image(0).unwrap_err().to_string().contains("vectors, not images"), "{name}");
        let stamp = SourceStamp::read(&target).unwrap().unwrap();
        assert!(stamp.stale(&dataset, &spec(labels), &golden(name)).unwrap().is_none(), "{name}");
        fingerprints.push(dataset.fingerprint().to_owned());
    }
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 1, "{fingerprints:?}");
}

#[test]
fn blocks_begin_at_any_row() {
    let files = "f2.npy deflated.npz bf16.safetensors snappy.parquet zstd.parquet datasets.parquet parts clip lightly.csv";
    for name in files.split(' ') {
        let source = VectorSource::open(&golden(name), &VectorOptions::default()).unwrap();
        assert_eq!((source.rows(), source.views(), source.width()), (50, 1, 8), "{name}");
        let all: Vec<VectorBlock> = source.blocks(0, 1000).map(Result::unwrap).collect();
        let [all] = all.as_slice() else { panic!("{name}: one block") };
        for first in [0, 1, 6, 7, 19, 20, 49] {
            let mut next = first;
            for block in source.blocks(first, 3) {
                let block = block.unwrap();
                let rows = block.vectors.len() / 8;
                assert_eq!((block.first, rows), (next, (50 - next).min(3) as usize), "{name} from {first}");
                let range = next as usize..next as usize + rows;
                assert_eq!(block.vectors, all.vectors[8 * range.start..8 * range.end], "{name} from {first}");
                assert_eq!(block.ids.as_deref(), all.ids.as_ref().map(|ids| &ids[range.clone()]));
                assert_eq!(block.labels.as_deref(), all.labels.as_ref().map(|labels| &labels[range.clone()]));
                next += rows as u64;
            }
            assert_eq!(next, 50, "{name} from {first}");
        }
        assert_eq!(source.blocks(50, 3).count(), 0);
    }
}

#[test]
fn ids_come_from_the_file() {
    for name in ["snappy.parquet", "zstd.parquet", "datasets.parquet", "clip", "lightly.csv"] {
        let source = VectorSource::open(&golden(name), &VectorOptions::default()).unwrap();
        let block = source.blocks(20, 1).next().unwrap().unwrap();
        assert_eq!(block.ids.unwrap(), ["photos/20.jpg"], "{name}");
    }
}
