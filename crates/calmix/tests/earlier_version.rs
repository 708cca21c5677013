//! A run that an earlier version wrote is read, predicted with, evaluated and trained again, to the bytes of that version.
//!
//! `golden/earlier-run` was written by commit 9596c8ea; paths in it stand as FOLDER.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "vectors/planted.rs"]
mod planted;

use std::fs;
use std::path::{Path, PathBuf};

use planted::{calmix, text};

/// What a trained run consists of.
const RESULTS: [&str; 5] =
    ["head.safetensors", "model.json", "model.safetensors", "projection.safetensors", "result.json"];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/earlier-run")
}

/// Copies the run and its vectors, with the paths that they have now.
fn copied(from: &Path, to: &Path, folder: &str) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copied(&entry.path(), &target, folder);
            continue;
        }
        let bytes = fs::read(entry.path()).unwrap();
        match String::from_utf8(bytes) {
            Ok(text) => fs::write(target, text.replace("FOLDER", folder)).unwrap(),
            Err(binary) => fs::write(target, binary.into_bytes()).unwrap(),
        }
    }
}

#[test]
fn run_of_an_earlier_version_has_the_same_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let place = temp.path();
    copied(&golden(), place, place.to_str().unwrap());
    let succeeds = |arguments: &[&str]| {
        let output = calmix(place, arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output));
        text(&output)
    };
    let bytes = |file: &str| fs::read(place.join(file)).unwrap();
    let written = |file: &str| fs::read(golden().join(file)).unwrap();

    succeeds(&["predict", "run", "vectors.npy", "--out", "now.csv"]);
    assert!(bytes("now.csv") == written("predicted.csv"), "the predictions differ");
    succeeds(&["evaluate", "run"]);
    assert!(succeeds(&["inspect", "run"]).contains("vectors"));

    // As if the process had been killed before it wrote what it had trained.
    for file in RESULTS {
        fs::remove_file(place.join("run").join(file)).unwrap();
    }
    succeeds(&["resume", "run"]);
    for file in RESULTS {
        let file = format!("run/{file}");
        assert!(bytes(&file) == written(&file), "{file} differs");
    }
}
