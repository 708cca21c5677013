//! `calmix train --features` and `calmix resume` on vectors, as a user runs them: without libtorch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "vectors/planted.rs"]
mod planted;

use std::fs;
use std::path::Path;

use planted::{calmix, text, write_labels, write_npy};

/// Writes 300 vectors, and the labels of the first 60.
fn made(folder: &Path) {
    write_npy(&folder.join("vectors.npy"), 0..300, false);
    write_labels(&folder.join("labels.csv"), 0, 60);
}

#[test]
fn vectors_train_and_resume_without_libtorch() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    let train = ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--threads", "2"];
    let quick = ["--set", "train.steps=100", "--set", "network.folds=4"];
    let output = calmix(temp.path(), &[&train[..], &quick[..]].concat());
    let said = text(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for expected in [
        "recipe    vectors: ",
        "60 labelled, 300 unlabelled, 0 validation, 0 test",
        "network   a linear head on vectors of 16 numbers",
        "training  at once, without steps; cpu, 2 threads",
        "each label is evaluated by a head trained without it",
        "model after 100 steps",
        "runs/vectors-1",
        "next: calmix report runs/vectors-1",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let run = temp.path().join("runs/vectors-1");
    for file in ["model.safetensors", "model.json", "projection.safetensors", "result.json", "split.json"] {
        assert!(run.join(file).is_file(), "{file}");
    }
    let environment = fs::read_to_string(run.join("environment.json")).unwrap();
    assert!(environment.contains("\"no libtorch\""), "{environment}");

    let model = fs::read(run.join("model.safetensors")).unwrap();
    fs::remove_file(run.join("result.json")).unwrap();
    let output = calmix(temp.path(), &["resume", "runs/vectors-1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(model == fs::read(run.join("model.safetensors")).unwrap());
    let again = calmix(temp.path(), &["resume", "runs/vectors-1"]);
    assert!(text(&again).contains("this run is already finished"), "{}", text(&again));
    let inspected = text(&calmix(temp.path(), &["inspect", "runs/vectors-1"]));
    assert!(inspected.contains("network   a head on vectors, without a backbone\n"), "{inspected}");
    let output = calmix(temp.path(), &["report", "runs/vectors-1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
fn unusable_arguments_for_vectors_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    fs::write(temp.path().join("one.csv"), "id,label\n0,ant\n3,ant\n").unwrap();
    let refusals = [
        (&["train", "vectors"][..], "trains on vectors that you already have"),
        (&["train", "--features", "no.npy"], "no.npy: does not exist"),
        (&["train", "--features", "vectors.npy", "--data", "."], "cannot be used with"),
        (&["train", "--labels", "labels.csv"], "--features"),
        (&["train", "--features", "vectors.npy", "--labels", "one.csv"], "there is only one class, `ant`"),
        (
            &["train", "--features", "vectors.npy", "--labels", "labels.csv", "--device", "cuda"],
            "trained on the CPU",
        ),
    ];
    for (arguments, expected) in refusals {
        let output = calmix(temp.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output));
        assert!(text(&output).contains(expected), "{arguments:?}: {}", text(&output));
    }
    assert!(!temp.path().join("runs").exists(), "runs that did not start leave nothing");
}
