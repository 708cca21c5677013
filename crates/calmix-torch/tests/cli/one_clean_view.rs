//! A head on one clean view of each image, and the same head on these features as vectors.

use std::fs;
use std::path::Path;

use calmix_testkit::npy_file;
use calmix_testkit::workspace::Workspace;
use calmix_testkit::workspace::folders::files;
use calmix_torch::run::read;
use calmix_torch::run::tensor_files::predictions_file;
use serde_json::Value;

use super::fixture::{Fixture, copy_folder};

const CLEAN: [&str; 2] = ["network.weak_views=0", "network.strong_views=0"];
const SHARED: [&str; 3] = ["network.dimensions=8", "network.folds=3", "evaluate.bootstrap=20"];

/// A page of cached features: safetensors, read by hand.
struct Page {
    ids: Vec<u64>,
    /// A clean vector of each sample, in f16.
    vectors: Vec<Vec<u8>>,
}

impl Page {
    fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        let tensor = |name: &str| {
            let offsets = header[name]["data_offsets"].as_array().unwrap();
            let [start, end] = [0, 1].map(|n| 8 + length + offsets[n].as_u64().unwrap() as usize);
            &bytes[start..end]
        };
        assert_eq!(tensor("views"), [0, 0], "only the clean view passes through the backbone");
        let ids: Vec<u64> =
            tensor("ids").chunks_exact(8).map(|id| u64::from_le_bytes(id.try_into().unwrap())).collect();
        let vectors = tensor("vectors");
        let rows = vectors.chunks_exact(vectors.len() / ids.len());
        Self { vectors: rows.map(<[u8]>::to_vec).collect(), ids }
    }
}

/// Writes the cached features as `vectors.npy`, in the order of the table, and the classes and splits of its samples as
/// `labels.csv`.
fn export(workspace: &Workspace, run: &Path) {
    let mut rows: Vec<(u64, Vec<u8>)> = Vec::new();
    let features = workspace.path("features");
    for name in files(&features) {
        if name.file_name().unwrap().to_str().unwrap().starts_with("page-") {
            let page = Page::read(&features.join(name));
            rows.extend(page.ids.into_iter().zip(page.vectors));
        }
    }
    rows.sort();
    let manifest: Value =
        serde_json::from_slice(&fs::read(run.join("prepared/manifest.json")).unwrap()).unwrap();
    let samples = fs::read(run.join("prepared/samples.bin")).unwrap();
    let mut lines = "label,split\n".to_owned();
    for (row, (id, _)) in rows.iter().enumerate() {
        assert_eq!(row as u64, *id, "every sample has features");
        let holds = |subset: &&Value| {
            let first = subset["first"].as_u64().unwrap();
            (first..first + subset["count"].as_u64().unwrap()).contains(id)
        };
        let subset = manifest["subsets"].as_array().unwrap().iter().find(holds).unwrap();
        let record = &samples[24 * row..24 * (row + 1)];
        let class = u32::from_le_bytes(record[20..].try_into().unwrap());
        let label = manifest["classes"][class as usize].as_str().unwrap_or_default();
        let split = match subset["name"].as_str().unwrap() {
            "unlabelled" => "train",
            split => split,
        };
        lines.extend([label, ",", split, "\n"]);
    }
    fs::write(workspace.path("labels.csv"), lines).unwrap();
    let width = rows[0].1.len() / 2;
    let mut npy = npy_file::header("<f2", &[rows.len(), width]);
    npy.extend(rows.into_iter().flat_map(|(_, vector)| vector));
    fs::write(workspace.path("vectors.npy"), npy).unwrap();
}

/// The bytes of the tensors of a safetensors file, without its header.
fn numbers(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[8 + length..].to_vec()
}

/// The columns of predictions that do not name the sample.
fn answers(text: &str) -> Vec<String> {
    text.lines().skip(1).map(|line| line.split_once(',').unwrap().1.to_owned()).collect()
}

#[test]
fn one_clean_view_is_the_run_on_its_features() {
    let workspace = Fixture::Weights.copy();
    fs::remove_dir_all(workspace.path("own/val")).unwrap();
    copy_folder(&workspace.path("photos/unlabelled"), &workspace.path("own/unlabelled"));
    let mut images = workspace.command(&["train", "head-folder", "--data", "own", "--run-dir", "images"]);
    images.args(["--threads", "1", "--set", "network.weights=tiny", "--set", "augment.size=8"]);
    for setting in CLEAN.iter().chain(&SHARED) {
        images.args(["--set", setting]);
    }
    let trained = workspace.end(images).with_code(0);
    trained.reports(&["one clean view of 8 pixels", "logistic regression, EM or their average"]);
    trained.prints(&[" is the model"]);
    let inspected = workspace.run(&["inspect", "images"]).with_code(0);
    inspected.prints(&["4 heads, same labels", "balanced EM"]);
    export(&workspace, &workspace.path("images"));
    let mut vectors = workspace.command(&["train", "--features", "vectors.npy", "--labels", "labels.csv"]);
    vectors.args(["--threads", "1", "--run-dir", "vectors"]);
    for setting in SHARED {
        vectors.args(["--set", setting]);
    }
    workspace.end(vectors).with_code(0);
    // What surrounds the numbers of the head, its metadata, also describes the backbone, which vectors do not have.
    let [images, vectors] =
        ["images", "vectors"].map(|run| numbers(&workspace.path(run).join("model.safetensors")));
    assert_eq!(images, vectors);
    let [images, vectors] = ["images", "vectors"]
        .map(|run| fs::read(workspace.path(run).join("projection.safetensors")).unwrap());
    assert_eq!(images, vectors);
    let [images, vectors] = ["images", "vectors"].map(|run| {
        let path = workspace.path(run).join("predictions/step-000000000-test-ema.safetensors");
        predictions_file::from_bytes(&fs::read(path).unwrap()).unwrap()
    });
    // Ids are places in the table, where the unlabelled vectors stand before the test split and the unlabelled images after it.
    assert_eq!(images.labels, vectors.labels);
    let [images, vectors] =
        [images, vectors].map(|split| split.logits.iter().map(|logit| logit.to_bits()).collect::<Vec<u32>>());
    assert_eq!(images, vectors);
    let [images, vectors] =
        ["images", "vectors"].map(|run| read::result(&workspace.path(run)).unwrap().unwrap());
    assert_eq!(images.evaluations, vectors.evaluations);
    assert_eq!(images.heads, vectors.heads);
    // The first rows of the table are the images of `train`, class by class.
    let predict = ["--coverage", "0.9", "--threads", "1"];
    let of_images = workspace.run(&[&["predict", "images", "own/train"], &predict[..]].concat()).with_code(0);
    let of_vectors =
        workspace.run(&[&["predict", "vectors", "vectors.npy"], &predict[..]].concat()).with_code(0);
    let of_images = answers(&of_images.stdout);
    assert!(of_images.len() > 8);
    assert_eq!(of_images, answers(&of_vectors.stdout)[..of_images.len()]);
    workspace.run(&["inspect", "images"]).with_code(0).prints(&["LR + EM"]);
    workspace.run(&["evaluate", "images"]).with_code(0).prints(&["test, 8 images"]);
    workspace.run(&["report", "images"]).with_code(0);
    workspace.run(&["resume", "images"]).with_code(0).prints(&["already finished"]);
}

#[test]
fn one_kind_of_view_is_refused() {
    let workspace = Fixture::Weights.copy();
    let refused = super::head::train(&workspace, "run", &["--set", "network.weak_views=2"]).with_code(2);
    refused.reports(&["network.strong_views", "set both network.weak_views and network.strong_views to 0"]);
}
