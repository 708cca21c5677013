//! Several sets of features and weights of labels: a run on files has the same bits as a classifier in memory.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_core::rng::{Domain, Seed};
use calmix_heads::trainer;
use calmix_heads::vector_classifier::{LabelledVectors, VectorClassifier, recipe};
use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::start::{StartContext, prepare_vectors};
use calmix_recipe::Layers;
use calmix_run::read;
use calmix_run::run_folder::RunPlace;
use calmix_run::tensor_files::head_files::{head_bytes, projection_bytes};
use calmix_testkit::npy_file;

const ROWS: usize = 200;
const LABELS: usize = 40;
const WIDTHS: [usize; 2] = [6, 10];
const CLASSES: [&str; 2] = ["ant", "bee"];

/// Two sets of features in different units.
fn set(number: usize) -> Vec<f32> {
    let mut numbers = Vec::new();
    for row in 0..ROWS {
        let mut stream = Seed(5).stream(Domain::Init, number as u64, row as u64);
        let centre = if row % 2 == 0 { 0.6 } else { -0.6 };
        let unit = [1.0, 100.0][number];
        numbers.extend((0..WIDTHS[number]).map(|_| (unit * (centre + stream.normal())) as f32));
    }
    numbers
}

fn weight(row: usize) -> f64 {
    [1.0, 0.5, 3.0][row % 3]
}

/// Trains a run in `folder`; returns the bits of its files of the model and the texts of its notes.
fn trained(folder: &Path, settings: &[&str]) -> ([Vec<u8>; 2], Vec<String>) {
    let mut labels = "id,label,weight\n".to_owned();
    for row in 0..LABELS {
        writeln!(labels, "{row},{},{}", CLASSES[row % 2], weight(row)).unwrap();
    }
    fs::write(folder.join("labels.csv"), labels).unwrap();
    let paths = [0, 1].map(|number| {
        let path = folder.join(format!("{number}.npy"));
        fs::write(&path, npy_file::floats(&[ROWS, WIDTHS[number]], set(number))).unwrap();
        path.display().to_string()
    });
    let [first, second] = paths;
    let layers = Layers::new()
        .recipe("vectors")
        .set_to("dataset.path", first)
        .set_to_list("dataset.more_features", vec![second])
        .set_to("dataset.labels", folder.join("labels.csv").display().to_string())
        .set("network.dimensions=4");
    let layers = settings.iter().fold(layers, |layers, setting| layers.set(setting));
    let run = folder.join("run");
    let stop = AtomicBool::new(false);
    let prepared = prepare_vectors(&layers, &RunPlace::New(run.clone()), StartContext::quiet(&stop)).unwrap();
    trainer::start(RunRequest::new(&stop), prepared).unwrap();
    let info = read::model_info(&run).unwrap();
    let head = info.head.as_ref().unwrap();
    assert_eq!((head.features, &head.sets[..]), (16, &[6, 10][..]));
    let projection = fs::read(run.join("projection.safetensors")).unwrap();
    let weights = fs::read(run.join("head.safetensors")).unwrap();
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap();
    let notes = events.lines().filter(|line| line.contains("\"note\"")).map(str::to_owned).collect();
    ([projection, weights], notes)
}

/// Trains in memory; returns the projection and the head with it folded in.
fn classifier(settings: &[&str], is_weighted: bool, sets: &[usize]) -> VectorClassifier {
    let [first, second] = [set(0), set(1)];
    let rows = first.chunks_exact(WIDTHS[0]).zip(second.chunks_exact(WIDTHS[1]));
    let vectors: Vec<f32> = rows.flat_map(|(first, second)| [first, second].concat()).collect();
    let labels: Vec<Option<u32>> = (0..ROWS).map(|row| (row < LABELS).then_some(row as u32 % 2)).collect();
    let weights: Vec<f64> = (0..ROWS).map(|row| if row < LABELS { weight(row) } else { 1.0 }).collect();
    let samples = LabelledVectors {
        vectors: Matrix::new(&vectors, ROWS, 16).unwrap(),
        views: 1,
        labels: &labels,
        classes: &CLASSES.map(str::to_owned),
        groups: &[],
        drawn: &[],
        weights: if is_weighted { &weights } else { &[] },
        sets,
    };
    let layers = Layers::new().recipe("vectors").set("network.dimensions=4");
    let layers = settings.iter().fold(layers, |layers, setting| layers.set(setting));
    VectorClassifier::fit(samples, &recipe(layers, 1).unwrap(), 2, &AtomicBool::new(false)).unwrap()
}

fn head_of(classifier: &VectorClassifier) -> Vec<u8> {
    head_bytes(classifier.model.head()).unwrap()
}

#[test]
fn run_on_sets_and_weights_is_the_classifier_in_memory() {
    for settings in [&[][..], &["labels.class_weight=balanced"]] {
        let temp = tempfile::tempdir().unwrap();
        let ([projection, folded], notes) = trained(temp.path(), settings);
        let found = classifier(settings, true, &WIDTHS);
        assert_eq!(projection, projection_bytes(found.model.projection()).unwrap());
        let run = read::model_info(&temp.path().join("run")).unwrap();
        assert_eq!(run.calibration, found.info.calibration);
        assert_eq!(run.held_out, found.info.held_out);
        assert!(String::from_utf8_lossy(&folded).contains("\\\"sets\\\":[6,10]"));
        assert!(notes.iter().any(|note| note.contains("40 labels have weights in training")), "{notes:?}");
    }
}

#[test]
fn sets_and_weights_change_the_head() {
    let weighted = classifier(&[], true, &WIDTHS);
    let plain = classifier(&[], false, &WIDTHS);
    let joined = classifier(&[], false, &[]);
    let balanced = classifier(&["labels.class_weight=balanced"], false, &WIDTHS);
    assert_ne!(head_of(&weighted), head_of(&plain));
    assert_ne!(head_of(&joined), head_of(&plain));
    // The classes have the same number of labels, so they weigh the same already.
    let nll = |found: &VectorClassifier| found.fit.head().unwrap().mean_nll().unwrap();
    assert!((nll(&balanced) - nll(&plain)).abs() < 1e-4, "{} {}", nll(&balanced), nll(&plain));
    // Weights calibrate nothing: the same labels are held out.
    let ids = |found: &VectorClassifier| found.fit.head().unwrap().predictions.ids.clone();
    assert_eq!(ids(&weighted), ids(&plain));
}
