//! Several sets of features in whole commands: one model, and what is refused.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::planted::{CLASSES, calmix, class, text};

const ROWS: usize = 240;

/// Writes a set of features of some rows with their ids, in reverse order if `is_reversed`.
fn write_set(path: &Path, rows: std::ops::Range<usize>, set: usize, is_reversed: bool) {
    let width = 3 + set;
    let names: Vec<String> = (0..width).map(|n| format!("v_{n}")).collect();
    let mut lines = Vec::new();
    for row in rows {
        let numbers = (0..width).map(|n| {
            let centre = if n % CLASSES.len() == row % CLASSES.len() { 1.5 } else { 0.0 };
            (centre + noise(row * 64 + n * 8 + set)).to_string()
        });
        lines.push(format!("r{row},{}", numbers.collect::<Vec<_>>().join(",")));
    }
    if is_reversed {
        lines.reverse();
    }
    fs::write(path, format!("id,{}\n{}\n", names.join(","), lines.join("\n"))).unwrap();
}

/// A number from 0 to 1 that looks random.
fn noise(seed: usize) -> f64 {
    let mut state = seed as u64 + 1;
    for _ in 0..3 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^= state >> 29;
    }
    (state >> 40) as f64 / f64::from(1 << 24)
}

fn trained() -> TempDir {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path();
    for set in 0..2 {
        write_set(&folder.join(format!("{set}.csv")), 0..ROWS, set, set == 1);
        write_set(&folder.join(format!("new{set}.csv")), ROWS..ROWS + 90, set, set == 1);
    }
    for (name, rows) in [("labels.csv", 0..60), ("later.csv", ROWS..ROWS + 90)] {
        let lines: Vec<String> = rows.map(|row| format!("r{row},{}", class(row))).collect();
        fs::write(folder.join(name), format!("id,label\n{}\n", lines.join("\n"))).unwrap();
    }
    let train = "train --features 0.csv --features 1.csv --labels labels.csv --run-dir run --threads 2 \
                 --set network.folds=3";
    ends(folder, train, 0, &[]);
    temp
}

/// Runs a command, which ends with `code` and prints all of `expected`.
#[track_caller]
fn ends(folder: &Path, arguments: &str, code: i32, expected: &[&str]) -> String {
    let output = calmix(folder, &arguments.split_whitespace().collect::<Vec<_>>());
    let said = text(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
    for expected in expected {
        assert!(said.contains(expected), "{arguments}: {expected}: {said}");
    }
    said
}

#[test]
fn model_of_two_sets_is_used_with_both() {
    let temp = trained();
    let folder = temp.path();
    let info: Value = serde_json::from_slice(&fs::read(folder.join("run/model.json")).unwrap()).unwrap();
    assert_eq!(info["head"]["sets"], serde_json::json!([3, 4]));
    ends(folder, "predict run new0.csv new1.csv --out sets.csv", 0, &["90 vectors"]);
    let rows = fs::read_to_string(folder.join("sets.csv")).unwrap();
    assert!(rows.lines().nth(1).unwrap().starts_with("r240,"), "{rows}");
    ends(folder, "evaluate run --on new0.csv --more-features new1.csv --labels later.csv", 0, &["90"]);
    let calibrate = "calibrate run --on new0.csv --more-features new1.csv --labels later.csv";
    ends(folder, calibrate, 0, &["new labels, 90 vectors"]);
    ends(folder, "export run --to model", 0, &[]);
    let card = fs::read_to_string(folder.join("model/README.md")).unwrap();
    assert!(card.contains("sets of 3 and 4 features"), "{card}");
    ends(folder, "prepare 0.csv --more-features 1.csv --labels labels.csv --to table", 0, &[]);
    let again = "train --features 0.csv --features 1.csv --labels labels.csv --prepared table --run-dir again \
                 --threads 2 --set network.folds=3";
    ends(folder, again, 0, &[]);
    let model = |run: &str| fs::read(folder.join(run).join("model.safetensors")).unwrap();
    assert_eq!(model("run"), model("again"));
}

#[test]
fn sets_that_do_not_fit_the_model_are_refused() {
    let temp = trained();
    let folder = temp.path();
    let sets = "trained on sets of 3 and 4 numbers";
    ends(folder, "predict run new1.csv new0.csv", 2, &["vectors of 4 and 3 numbers", sets]);
    ends(folder, "predict run new0.csv", 2, &["vectors of 3 numbers", sets, "one path for each set"]);
    ends(folder, "predict run new0.csv new1.csv 0.csv", 2, &["2 sets of features"]);
    ends(folder, "predict run new0.csv 1.csv", 2, &["no row for 90 of the 90 ids of", "\"r240\""]);
    ends(folder, "evaluate run --on new0.csv --labels later.csv", 2, &["vectors of 3 numbers", sets]);
    write_set(&folder.join("short.csv"), 0..ROWS - 2, 1, true);
    let train = "train --features 0.csv --features short.csv --labels labels.csv --run-dir short";
    ends(folder, train, 2, &["no row for 2 of the 240 ids", "\"r238\", \"r239\""]);
    let missing = "train --features 0.csv --features no.csv --labels labels.csv --run-dir short";
    ends(folder, missing, 2, &["no.csv", "does not exist"]);
}
