//! `calmix calibrate` and `calmix evaluate` of a run on vectors, as a user runs them: without libtorch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "vectors/planted.rs"]
mod planted;

use std::fs;
use std::path::Path;

use planted::{calmix, class, text, write_labels, write_npy};
use serde_json::Value;
use tempfile::TempDir;

/// A run on rows 0 to 299, 60 of them labelled, and 90 labelled rows that it has not seen.
fn trained() -> TempDir {
    let temp = tempfile::tempdir().unwrap();
    write_npy(&temp.path().join("vectors.npy"), 0..300, false);
    write_labels(&temp.path().join("labels.csv"), 0, 60);
    write_npy(&temp.path().join("later.npy"), 300..390, false);
    write_labels(&temp.path().join("later.csv"), 300, 90);
    let train = ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run"];
    let quick = ["--set", "train.steps=60", "--set", "network.folds=3", "--threads", "2"];
    succeeds(temp.path(), &[&train[..], &quick[..]].concat(), &[]);
    temp
}

/// Runs a command that succeeds, and prints all of `expected`.
#[track_caller]
fn succeeds(folder: &Path, arguments: &[&str], expected: &[&str]) -> String {
    ends(folder, arguments, 0, expected)
}

#[track_caller]
fn ends(folder: &Path, arguments: &[&str], code: i32, expected: &[&str]) -> String {
    let output = calmix(folder, arguments);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    for expected in expected {
        assert!(said.contains(expected), "{arguments:?}: {expected}: {said}");
    }
    String::from_utf8(output.stdout).unwrap()
}

const CALIBRATE: [&str; 6] = ["calibrate", "run", "--on", "later.npy", "--labels", "later.csv"];

#[test]
fn calibration_is_refitted_on_new_vectors() {
    let temp = trained();
    let info = temp.path().join("run/model.json");
    let before = fs::read(&info).unwrap();
    let printed = succeeds(
        temp.path(),
        &CALIBRATE,
        &[
            "new labels, 90 vectors",
            "the calibrator was fitted on these vectors, so each is evaluated by a fit without it",
            "fitted on 90 new labels",
            "written to run/model.json; the previous version is in run/model.previous.json\n",
            "next: calmix evaluate run",
        ],
    );
    assert!(!printed.contains("image"), "{printed}");
    assert_eq!(fs::read(temp.path().join("run/model.previous.json")).unwrap(), before);
    let after: Value = serde_json::from_slice(&fs::read(&info).unwrap()).unwrap();
    assert_eq!(after["calibration"]["fitted_on"], "later");
    assert_eq!(after["held_out"]["label"].as_array().unwrap().len(), 90);
    succeeds(temp.path(), &["inspect", "run"], &["calibration refitted on the labels of", "90 vectors"]);
    succeeds(temp.path(), &["predict", "run", "later.npy"], &[]);

    // Fewer labels, and none of the class `cow`.
    let rows = (0..40).filter(|row| row % 3 != 2);
    let labels: String = rows.map(|row| format!("{row},{}\n", class(300 + row))).collect();
    fs::write(temp.path().join("few.csv"), "id,label\n".to_owned() + &labels).unwrap();
    write_npy(&temp.path().join("few.npy"), 300..340, false);
    let few = ["calibrate", "run", "--on", "few.npy", "--labels", "few.csv", "--json"];
    let printed = succeeds(
        temp.path(),
        &few,
        &[
            "warning: no labels here for 1 class of the model: cow\n",
            "warning: the calibration is refitted on 27 labels, fewer than the 90 of the previous fit\n",
        ],
    );
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["missing_classes"], serde_json::json!(["cow"]));
    assert_eq!(printed["checked_against_training"], true);
    assert_eq!(printed["calibration"]["samples"], 27);
}

#[test]
fn unusable_labels_for_calibration_are_refused() {
    let temp = trained();
    let info = fs::read(temp.path().join("run/model.json")).unwrap();
    // Rows 290 to 299 were trained on without their labels; as numbers of 64 bits they are the same vectors.
    for (file, is_double) in [("mixed.npy", false), ("double.npy", true)] {
        write_npy(&temp.path().join(file), 290..320, is_double);
        write_labels(&temp.path().join("mixed.csv"), 290, 30);
        let trained_on = format!("trained on 10 of 30 labelled vectors, such as {file}[0], ");
        let arguments = ["calibrate", "run", "--on", file, "--labels", "mixed.csv"];
        ends(
            temp.path(),
            &arguments,
            2,
            &[&trained_on, "leave out the vectors that the model was trained on"],
        );
    }
    write_labels(&temp.path().join("nine.csv"), 300, 9);
    fs::write(temp.path().join("dog.csv"), "id,label\n0,dog\n1,ant\n").unwrap();
    fs::write(temp.path().join("wide.csv"), "v_0,v_1,label\n1,2,ant\n2,1,bee\n").unwrap();
    let refusals = [
        (&["--on", "no.npy"][..], "no.npy: does not exist"),
        (&["--on", "later.npy"], "there are no labelled vectors"),
        (
            &["--on", "later.npy", "--labels", "nine.csv"],
            "only 9 labelled vectors, and fitting a temperature",
        ),
        (&["--on", "later.npy", "--labels", "dog.csv"], "the model has no class dog"),
        (&["--on", "wide.csv"], "has vectors of 2 numbers, but run was trained on vectors of 16"),
        (&["--on", "later.npy", "--labels", "later.csv", "--device", "cuda"], "runs on the CPU"),
    ];
    for (arguments, expected) in refusals {
        ends(temp.path(), &[&["calibrate", "run"], arguments].concat(), 2, &[expected]);
    }
    assert_eq!(fs::read(temp.path().join("run/model.json")).unwrap(), info);
    assert!(!temp.path().join("run/model.previous.json").exists());

    // Without the vectors of the training, nothing can be compared.
    fs::rename(temp.path().join("vectors.npy"), temp.path().join("elsewhere.npy")).unwrap();
    let warning = "warning: cannot check whether the model was trained on these vectors: ";
    succeeds(temp.path(), &CALIBRATE, &[warning]);
}
