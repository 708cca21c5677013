//! A run that an earlier version wrote is read, predicted with, evaluated and trained again, to the bytes of that version.
//!
//! `golden/earlier-run` was written by commit 9596c8ea; paths in it stand as FOLDER.

use std::fs;
use std::path::{Path, PathBuf};

use crate::planted::{calmix, text};

/// What the training of a run leaves, beside its result.
const TRAINED: [&str; 3] = ["head.safetensors", "model.safetensors", "projection.safetensors"];

/// The BLAKE3 hash of the result that the earlier version wrote, and of its predictions.
const RESULT: &str = "821400f0a53b19838449140f5e1ff4d65ebe077140d8d2392d89aad708acd4f5";
const PREDICTED: &str = "cc104e0f71f213cdc75915eec428ac6ba6002aaacfaca92bbdf1d0b4092b407d";

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

/// Removes a field that the earlier version did not write: a number, or an object of numbers.
fn without(json: &str, field: &str) -> String {
    let key = format!("\"{field}\": ");
    let mut parts = json.split(&key);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| {
        let end =
            if part.starts_with('{') { part.find('}').unwrap() + 1 } else { part.find([',', '\n']).unwrap() };
        // The field is never the first of its object.
        kept.trim_end().trim_end_matches(',').to_owned() + &part[end..]
    })
}

#[test]
fn run_of_an_earlier_version_has_the_same_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let place = temp.path();
    copied(&golden(), place, place.to_str().unwrap());
    // Git keeps no empty folders.
    fs::create_dir(place.join("run/checkpoints")).unwrap();
    let succeeds = |arguments: &[&str]| {
        let output = calmix(place, arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output));
        text(&output)
    };
    let bytes = |file: &str| fs::read(place.join(file)).unwrap();
    let hash = |file: &str| blake3::hash(&bytes(file)).to_hex().to_string();

    succeeds(&["predict", "run", "vectors.npy", "--out", "now.csv"]);
    assert_eq!(hash("now.csv"), PREDICTED);

    // As after a kill before the run wrote what it had trained.
    for file in TRAINED.into_iter().chain(["model.json"]) {
        fs::remove_file(place.join("run").join(file)).unwrap();
    }
    succeeds(&["resume", "run"]);
    let mut result = String::from_utf8(bytes("run/result.json")).unwrap();
    for added in ["balanced_error", "macro_f1"] {
        assert!(result.contains(added), "{result}");
        result = without(&result, added);
    }
    fs::write(place.join("run/result.json"), result).unwrap();
    assert_eq!(hash("run/result.json"), RESULT);
    for file in TRAINED {
        let file = format!("run/{file}");
        assert!(bytes(&file) == fs::read(golden().join(&file)).unwrap(), "{file} differs");
    }
    // The description also has the hash of the reference, which that version did not keep.
    let description = |file: &[u8]| -> serde_json::Value { serde_json::from_slice(file).unwrap() };
    let mut info = description(&bytes("run/model.json"));
    let reference = info.as_object_mut().unwrap().remove("reference");
    assert_eq!(reference.unwrap(), hash("run/reference.safetensors"));
    assert_eq!(info, description(&fs::read(golden().join("run/model.json")).unwrap()));
    succeeds(&["evaluate", "run"]);
    assert!(succeeds(&["inspect", "run"]).contains("vectors"));
    assert!(!succeeds(&["compare", "run"]).contains("balanced error"));
    succeeds(&["report", "run"]);
}
