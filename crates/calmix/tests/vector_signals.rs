//! Signals end every command on vectors at once, in every phase that can take long. `--no-capture` prints the times, and
//! `CALMIX_EXHAUSTIVE=1` takes the sizes of the documentation.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use calmix_head::network::{Head, HeadShape};
use calmix_head::projection::Projection;
use calmix_testkit::tier;
use tempfile::TempDir;

use crate::interrupted::{Running, found_below, write_labels, write_many, write_vectors};
use crate::model_files::write_model;

const TRAIN: [&str; 9] =
    ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--threads", "2", "--run-dir", "run"];

/// Vectors with labels of so many classes that an iteration of logistic regression takes long, and all of them minutes.
fn many_classes() -> TempDir {
    let temp = tempfile::tempdir().unwrap();
    let (rows, width, classes) = if tier::is_exhaustive() { (20_000, 768, 100) } else { (4_000, 64, 1_000) };
    write_vectors(&temp.path().join("vectors.npy"), rows, width);
    write_labels(&temp.path().join("labels.csv"), rows, classes);
    temp
}

/// Waits until a run has its projection, and its heads are trained.
fn until_heads(running: &mut Running, folder: &Path) {
    running.until(|| found_below(folder, "projection.safetensors"));
}

/// Without a stop in every iteration these would end a strength of the penalty later, minutes after the signal.
#[test]
fn logistic_regression_ends_at_a_signal() {
    let temp = many_classes();
    let mut running = Running::new(temp.path(), &TRAIN);
    until_heads(&mut running, temp.path());
    let ended = running.signalled("TERM", "train, logistic regression");
    assert_eq!(ended.code, Some(75), "{}", ended.stderr);
    assert!(ended.stdout.ends_with("next: calmix resume run\n"), "{}", ended.stdout);
    fs::remove_file(temp.path().join("run/projection.safetensors")).unwrap();

    let mut running = Running::new(temp.path(), &["resume", "run"]);
    until_heads(&mut running, temp.path());
    let ended = running.signalled("INT", "resume, logistic regression");
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(ended.stdout.ends_with("next: calmix resume run\n"), "{}", ended.stdout);
}

#[test]
fn sweep_of_vectors_ends_at_a_signal() {
    let temp = many_classes();
    let grid = "[all]\ndataset.labels = \"labels.csv\"\n\n[[grid]]\nrecipe = \"vectors\"\nseeds = [1, 2]\n";
    fs::write(temp.path().join("grid.toml"), grid).unwrap();
    let arguments = ["sweep", "grid.toml", "--data", "vectors.npy", "--sweep-dir", "swept"];
    let mut running = Running::new(temp.path(), &arguments);
    until_heads(&mut running, temp.path());
    let ended = running.signalled("TERM", "sweep, logistic regression");
    assert_eq!(ended.code, Some(75), "{}", ended.stderr);
    assert!(ended.stderr.contains("stopped, 2 runs left\n"), "{}", ended.stderr);
}

/// As for training, the projection takes minutes.
#[test]
fn review_ends_at_a_signal() {
    let temp = tempfile::tempdir().unwrap();
    write_vectors(&temp.path().join("vectors.npy"), 1_000, 4_096);
    let mut running = Running::new(temp.path(), &["review", "vectors.npy"]);
    running.until(|| found_below(temp.path(), "manifest.json"));
    let ended = running.signalled("INT", "review, projection");
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(!temp.path().join("review.csv").exists());
    assert!(!found_below(temp.path(), "manifest.json"), "the table of the samples is left behind");
}

/// Principal directions of thousands of dimensions take minutes.
#[test]
fn projection_ends_at_a_signal() {
    let temp = tempfile::tempdir().unwrap();
    write_vectors(&temp.path().join("vectors.npy"), 1_000, 4_096);
    write_labels(&temp.path().join("labels.csv"), 1_000, 4);
    let mut running = Running::new(temp.path(), &TRAIN);
    running.until(|| temp.path().join("run/recipe.toml").exists());
    let ended = running.signalled("TERM", "train, projection");
    assert!(!temp.path().join("run/projection.safetensors").exists());
    assert_eq!(ended.code, Some(75), "{}", ended.stderr);
}

#[test]
fn reading_vectors_ends_at_a_signal() {
    let temp = tempfile::tempdir().unwrap();
    write_many(&temp.path().join("vectors.npy"), 500, 64);
    for (arguments, name) in [
        (&["prepare", "vectors.npy"][..], "INT"),
        (&["train", "--features", "vectors.npy", "--run-dir", "run"], "TERM"),
    ] {
        let mut running = Running::new(temp.path(), arguments);
        running.until_printed("reading ");
        let ended = running.signalled(name, &format!("{}, reading", arguments[0]));
        assert_eq!(ended.code, Some(130), "{}", ended.stderr);
        assert!(!found_below(temp.path(), "samples.bin") && !temp.path().join("run").exists());
    }
}

#[test]
fn predicting_vectors_ends_at_a_signal() {
    let temp = tempfile::tempdir().unwrap();
    write_run(temp.path(), 64, 100);
    write_many(&temp.path().join("vectors.npy"), 500, 64);
    let arguments = ["predict", "run", "vectors.npy", "--out", "predictions.csv"];
    let mut running = Running::new(temp.path(), &arguments);
    let predictions = temp.path().join("predictions.csv");
    running.until(|| fs::metadata(&predictions).is_ok_and(|file| file.len() > 0));
    let ended = running.signalled("TERM", "predict");
    assert_eq!(ended.code, Some(75), "{}", ended.stderr);
}

/// Vector scaling of a hundred classes takes up to a thousand passes over the labels, six times.
#[test]
fn calibrating_on_vectors_ends_at_a_signal() {
    let temp = tempfile::tempdir().unwrap();
    // One class of the model has no label, which is announced before the fit.
    write_run(temp.path(), 8, 100);
    write_vectors(&temp.path().join("vectors.npy"), 19_000, 8);
    write_labels(&temp.path().join("labels.csv"), 19_000, 99);
    let model = fs::read(temp.path().join("run/model.json")).unwrap();
    let mut running =
        Running::new(temp.path(), &["calibrate", "run", "--on", "vectors.npy", "--labels", "labels.csv"]);
    running.until_printed("no labels here for 1 class");
    let ended = running.signalled("TERM", "calibrate, fit");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(75), ""), "{}", ended.stderr);
    assert_eq!(fs::read(temp.path().join("run/model.json")).unwrap(), model);
    assert_eq!(fs::read_dir(temp.path().join("scratch")).unwrap().count(), 0);
}

#[test]
fn evaluating_on_vectors_ends_at_a_signal() {
    let temp = tempfile::tempdir().unwrap();
    write_run(temp.path(), 8, 100);
    write_vectors(&temp.path().join("vectors.npy"), 60_000, 8);
    write_labels(&temp.path().join("labels.csv"), 60_000, 100);
    let mut running =
        Running::new(temp.path(), &["evaluate", "run", "--on", "vectors.npy", "--labels", "labels.csv"]);
    // The table is whole; predictions and a thousand resamples of them follow.
    let scratch = temp.path().join("scratch");
    running
        .until(|| fs::read_dir(&scratch).unwrap().any(|each| each.unwrap().path().join("prepared").exists()));
    let ended = running.signalled("TERM", "evaluate --on");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(75), ""), "{}", ended.stderr);
    assert_eq!(fs::read_dir(temp.path().join("scratch")).unwrap().count(), 0);
}

/// As many classes as vectors are ids: training would take days, and is refused instead.
#[test]
fn ids_are_refused_as_labels() {
    let temp = tempfile::tempdir().unwrap();
    let count = if tier::is_exhaustive() { 300_000 } else { 20_000 };
    write_vectors(&temp.path().join("vectors.npy"), count, 4);
    write_labels(&temp.path().join("labels.csv"), count, count);
    let ended = Running::new(temp.path(), &TRAIN).ended();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let problem = format!("labels.csv: {count} classes for {count} labels");
    for part in [&problem, "a column of ids", "--label-column"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert!(!temp.path().join("run").exists());
}

/// Writes the files of a trained model, without training one.
fn write_run(folder: &Path, width: usize, classes: usize) {
    let projection = Projection::new(vec![0.25; width], Vec::new()).unwrap();
    let shape = HeadShape { width, hidden: None, classes };
    let numbers = (0..shape.numbers()).map(|n| ((n * 7_919) % 101) as f32 / 10.0).collect();
    let head = Head::new(shape, numbers).unwrap();
    let classes = (0..classes).map(|class| format!("c{class}")).collect();
    write_model(&folder.join("run"), &projection, &head, classes, None);
}
