//! `calmix train --features` and `calmix resume` on vectors, as a user runs them: without libtorch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ROWS: usize = 300;
const WIDTH: usize = 16;
const CLASSES: [&str; 3] = ["ant", "bee", "cow"];

/// Writes vectors near the centre of their class, and the labels of the first 60.
fn made(folder: &Path) {
    let mut state = 1_u64;
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    let mut numbers = Vec::new();
    let mut labels = "id,label\n".to_owned();
    for row in 0..ROWS {
        let class = row % CLASSES.len();
        for n in 0..WIDTH {
            let centre = if n % CLASSES.len() == class { 1.0 } else { 0.0 };
            numbers.extend((centre + noise()).to_le_bytes());
        }
        if row < 60 {
            writeln!(labels, "{row},{}", CLASSES[class]).unwrap();
        }
    }
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({ROWS}, {WIDTH}), }}");
    let header = format!("{header:<117}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    file.extend(numbers);
    fs::write(folder.join("vectors.npy"), file).unwrap();
    fs::write(folder.join("labels.csv"), labels).unwrap();
}

/// Runs `calmix` from a folder without `calmix-torch`.
fn calmix(folder: &Path, arguments: &[&str]) -> Output {
    let program = folder.join("bin/calmix");
    if !program.exists() {
        fs::create_dir_all(folder.join("bin")).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_calmix"), &program).unwrap();
    }
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("PATH", "/usr/bin:/bin").env_remove("CALMIX_TORCH");
    command.stdin(Stdio::null()).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout))
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
        "training  100 steps of 16 + 112 vectors; cpu, 2 threads",
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
