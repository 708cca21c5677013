//! Two versions of ONNX Runtime: the newest, and the last for Python 3.10 and Macs with Intel processors.

use std::fs;
use std::os::unix::fs::symlink;

use calmix_testkit::tier::skipped;

use super::cached::library;
use super::child::child;

const VERSIONS: [&str; 2] = ["1.31.1", "1.23.2"];

#[test]
fn both_versions_compute_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut answers = Vec::new();
    for version in VERSIONS {
        let Some(library) = library(version) else {
            return skipped(&format!(
                "the cache has no onnxruntime {version}; `cargo xtask setup` puts it there"
            ));
        };
        let answer = child(folder.path(), &[("ORT_DYLIB_PATH", &library)]);
        assert_eq!(answer.first_line, format!("onnxruntime {version}"));
        answers.push(answer.features);
    }
    let [newest, older] = &answers[..] else { panic!("two versions") };
    assert!(!newest.is_empty() && newest.len() == older.len());
    let largest = newest.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
    let differences = newest.iter().zip(older).map(|(newest, older)| (newest - older).abs());
    let difference = differences.fold(0.0, f32::max) / largest;
    println!("largest difference of a feature: {difference:e}");
    assert!(difference < 1e-5, "{difference}");
}

#[test]
fn cache_has_the_newest_unless_a_variable_names_another() {
    let [Some(newest), Some(older)] = VERSIONS.map(library) else {
        return skipped("the cache lacks a version of onnxruntime; `cargo xtask setup` puts it there");
    };
    let folder = tempfile::tempdir().unwrap();
    for file in [&newest, &older] {
        let version =
            folder.path().join("cache/onnxruntime").join(file.parent().unwrap().file_name().unwrap());
        fs::create_dir_all(&version).unwrap();
        fs::copy(file, version.join(file.file_name().unwrap())).unwrap();
    }
    assert_eq!(child(folder.path(), &[]).first_line, "onnxruntime 1.31.1");
    // A link is resolved, and the name of the file that it leads to has the version.
    let link = folder.path().join("libonnxruntime.so");
    symlink(&older, &link).unwrap();
    assert_eq!(child(folder.path(), &[("ORT_DYLIB_PATH", &link)]).first_line, "onnxruntime 1.23.2");
}
