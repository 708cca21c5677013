//! A head on neighbours, as a user trains and uses it: on vectors whose classes are on two sides, where no linear head is right.

use std::fs;
use std::path::Path;

use calmix_core::rng::{Domain, Seed};
use calmix_testkit::npy_file;
use serde_json::Value;

use crate::planted::{calmix, text};

const WIDTH: usize = 12;
const CLASSES: [&str; 3] = ["ant", "bee", "cow"];
const LABELS: usize = 60;

fn class(row: usize) -> &'static str {
    CLASSES[row / 2 % CLASSES.len()]
}

/// A row near the centre of its class, or on the other side.
fn vector(row: usize) -> Vec<f32> {
    let mut stream = Seed(9).stream(Domain::Init, 0, row as u64);
    let side = if row.is_multiple_of(2) { 2.0 } else { -2.0 };
    let centre = |n: usize| if n % CLASSES.len() == row / 2 % CLASSES.len() { side } else { 0.0 };
    (0..WIDTH).map(|n| (centre(n) + stream.normal()) as f32).collect()
}

fn write(path: &Path, rows: std::ops::Range<usize>) {
    let mut file = npy_file::header("<f4", &[rows.len(), WIDTH]);
    file.extend(rows.flat_map(vector).flat_map(f32::to_le_bytes));
    fs::write(path, file).unwrap();
}

#[test]
fn neighbours_train_predict_evaluate_and_export() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path();
    write(&folder.join("vectors.npy"), 0..600);
    write(&folder.join("new.npy"), 600..900);
    let lines = (0..LABELS).map(|row| format!("{row},{}\n", class(row)));
    fs::write(folder.join("labels.csv"), "id,label\n".to_owned() + &lines.collect::<String>()).unwrap();
    let run = |arguments: &[&str]| {
        let output = calmix(folder, arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        text(&output)
    };
    let train =
        ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--threads", "1", "--run-dir"];
    let settings = ["--set", "network.neighbours=true", "--set", "network.folds=4"];
    let said = run(&[&train[..], &["run"], &settings[..]].concat());
    assert!(said.contains("neighbours is the model"), "{said}");
    assert!(said.contains("model.safetensors holds vectors of training samples ("), "{said}");
    let info: Value = serde_json::from_slice(&fs::read(folder.join("run/model.json")).unwrap()).unwrap();
    assert!(info["head"]["neighbours"].as_u64().unwrap() >= 512, "{}", info["head"]);
    assert!(!folder.join("run/head.safetensors").exists());

    run(&["predict", "run", "new.npy", "--out", "predictions.csv"]);
    let rows = fs::read_to_string(folder.join("predictions.csv")).unwrap();
    let mut rows = rows.lines();
    let names: Vec<&str> = rows.next().unwrap().split(',').collect();
    let column = names.iter().position(|&name| name == "label").unwrap();
    let predicted: Vec<&str> = rows.map(|row| row.split(',').nth(column).unwrap()).collect();
    assert_eq!(predicted.len(), 300);
    let wrong = predicted.iter().enumerate().filter(|&(row, &label)| label != class(600 + row)).count();
    assert!(wrong < 30, "{wrong} of 300");

    assert!(run(&["evaluate", "run"]).contains("60"));
    run(&["export", "run", "--to", "exported"]);
    assert!(folder.join("exported/model.onnx").is_file());

    // A model file that claims more units than it has is refused.
    let mut info = info;
    info["head"]["neighbours"] = 4_000_000_000_u64.into();
    fs::write(folder.join("run/model.json"), info.to_string()).unwrap();
    let refused = calmix(folder, &["predict", "run", "new.npy", "--out", "again.csv"]);
    assert_ne!(refused.status.code(), Some(0));
    assert!(text(&refused).contains("model.json"), "{}", text(&refused));

    // Without the key, the heads are the linear ones.
    let said = run(&[&train[..], &["linear", "--set", "network.folds=4"]].concat());
    assert!(!said.contains("neighbours"), "{said}");
}
