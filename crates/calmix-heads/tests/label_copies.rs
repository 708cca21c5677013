//! Near-duplicates among labels, from vectors to folds.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_core::rng::{Domain, Seed};
use calmix_head::near_duplicates::LinkedCopies;
use calmix_heads::trainer;
use calmix_heads::vector_classifier::{LabelledVectors, VectorClassifier, recipe};
use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::start::{StartContext, prepare_vectors};
use calmix_recipe::Layers;
use calmix_run::events::Event;
use calmix_run::read;
use calmix_run::run_folder::RunPlace;
use calmix_testkit::npy_file;

const ROWS: usize = 300;
const LABELS: usize = 60;
const COPIES: usize = 15;
const WIDTH: usize = 16;
const CLASSES: [&str; 3] = ["ant", "bee", "cow"];

/// Vectors around the centre of their class. The first 60 rows have a label; the last 15 of these are copies of the first.
fn vectors() -> Vec<f32> {
    let mut stream = Seed(4).stream(Domain::Init, 0, 0);
    let mut numbers: Vec<f32> = Vec::new();
    for row in 0..ROWS {
        for n in 0..WIDTH {
            let number = if (LABELS - COPIES..LABELS).contains(&row) {
                numbers[(row + COPIES - LABELS) * WIDTH + n] + 0.02 * stream.normal() as f32
            } else {
                f32::from(u8::from(n % CLASSES.len() == row % CLASSES.len())) + 0.5 * stream.normal() as f32
            };
            numbers.push(number);
        }
    }
    numbers
}

/// Writes the vectors and their labels; with a column of groups if `has_groups`.
fn made(folder: &Path, has_groups: bool) {
    let mut labels = if has_groups { "id,label,group\n" } else { "id,label\n" }.to_owned();
    for row in 0..LABELS {
        let class = CLASSES[row % CLASSES.len()];
        if has_groups {
            writeln!(labels, "{row},{class},site {}", row / 4).unwrap();
        } else {
            writeln!(labels, "{row},{class}").unwrap();
        }
    }
    fs::write(folder.join("vectors.npy"), npy_file::floats(&[ROWS, WIDTH], vectors())).unwrap();
    fs::write(folder.join("labels.csv"), labels).unwrap();
}

/// Trains a run, and returns the notes that it logged about near-duplicates and the groups of its held-out labels.
fn trained(folder: &Path, name: &str, settings: &[&str]) -> (Vec<String>, Vec<u32>) {
    let mut layers = Layers::new()
        .recipe("vectors")
        .set_to("dataset.path", folder.join("vectors.npy").display().to_string())
        .set_to("dataset.labels", folder.join("labels.csv").display().to_string())
        .set("network.folds=5");
    for setting in settings {
        layers = layers.set(setting);
    }
    let run = folder.join(name);
    let stop = AtomicBool::new(false);
    let place = RunPlace::New(run.clone());
    let prepared = prepare_vectors(&layers, &place, StartContext::quiet(&stop)).unwrap();
    trainer::start(RunRequest::new(&stop), prepared).unwrap();
    let mut notes = Vec::new();
    for event in read::events(&run).unwrap() {
        if let Event::Note(note) = event {
            notes.push(note.text);
        }
    }
    notes.retain(|note| note.contains("near-duplicate"));
    (notes, read::model_info(&run).unwrap().held_out.unwrap().group)
}

#[test]
fn copies_of_labels_share_a_group() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path(), false);
    let (notes, groups) = trained(temp.path(), "linked", &[]);
    assert_eq!(notes, ["60 labels in 45 groups: 15 are near-duplicates of another label and share its fold"]);
    assert_eq!(groups.len(), LABELS);
    for copy in 0..COPIES {
        assert_eq!(groups[copy], groups[LABELS - COPIES + copy]);
    }
    let (notes, groups) = trained(temp.path(), "alone", &["labels.link_copies=false"]);
    assert!(notes.is_empty() && groups.is_empty());
}

#[test]
fn groups_of_the_user_replace_links() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path(), true);
    let (notes, groups) = trained(temp.path(), "groups", &[]);
    assert!(notes.is_empty());
    assert!(groups.chunks(4).all(|group| group.iter().all(|&number| number == group[0])), "{groups:?}");
}

#[test]
fn classifier_in_memory_links_as_a_run_does() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path(), false);
    let (_, groups) = trained(temp.path(), "run", &[]);
    let numbers = vectors();
    let labels: Vec<Option<u32>> =
        (0..ROWS).map(|row| (row < LABELS).then_some((row % CLASSES.len()) as u32)).collect();
    let classes = CLASSES.map(str::to_owned);
    let samples = LabelledVectors {
        vectors: Matrix::new(&numbers, ROWS, WIDTH).unwrap(),
        views: 1,
        labels: &labels,
        classes: &classes,
        groups: &[],
        drawn: &[],
        weights: &[],
        sets: &[],
    };
    let recipe = recipe(Layers::new().recipe("vectors").set("network.folds=5"), 1).unwrap();
    let fitted = VectorClassifier::fit(samples, &recipe, 2, &AtomicBool::new(false)).unwrap();
    assert_eq!(fitted.copies.count(), LinkedCopies { labels: LABELS, groups: LABELS - COPIES });
    assert_eq!(fitted.info.held_out.unwrap().group, groups);
}
