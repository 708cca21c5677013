//! `calmix review --live`: the model that the page fits in WebAssembly is the one that `calmix train` fits to the same labels.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use calmix_core::rng::{Domain, Seed};
use calmix_testkit::workspace::Workspace;
use calmix_testkit::{npy_file, tier};
use serde_json::{Value, json};

use super::new_workspace;

const CLASSES: [&str; 4] = ["ant", "bee", "cow", "dog"];
const SAMPLES: usize = 500;
/// More numbers than a page carries of a vector.
const WIDTH: usize = 80;
/// Sums of products are rounded otherwise in WebAssembly, which has no fused multiply-add.
const TOLERANCE: f64 = 1e-4;

fn class(row: usize) -> &'static str {
    CLASSES[row % CLASSES.len()]
}

fn write_vectors(path: &Path) {
    let mut file = npy_file::header("<f4", &[SAMPLES, WIDTH]);
    for row in 0..SAMPLES {
        let mut stream = Seed(11).stream(Domain::Init, 0, row as u64);
        for place in 0..WIDTH {
            let centre = if place % CLASSES.len() == row % CLASSES.len() { 0.35 } else { 0.0 };
            file.extend(((centre + stream.normal()) as f32).to_le_bytes());
        }
    }
    fs::write(path, file).unwrap();
}

/// Fits the model of `review.html` under node, to its own labels and to these answers.
fn fit_of_page(workspace: &Workspace, answers: &BTreeMap<String, &str>) -> Value {
    fs::write(workspace.path("answers.json"), json!(answers).to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/live_page.mjs");
    let mut node = Command::new("node");
    node.arg(script).arg(workspace.path("review.html")).arg(workspace.path("answers.json"));
    let output = node.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The rows of a fit that are chosen by margin, the least certain first.
fn by_margin(fit: &Value) -> Vec<Value> {
    let mut rows = fit["rows"].as_array().unwrap().clone();
    rows.retain(|row| row["why"] == "margin");
    rows.sort_by(|a, b| a["margin"].as_f64().unwrap().total_cmp(&b["margin"].as_f64().unwrap()));
    rows
}

#[test]
fn fit_of_the_page_is_that_of_the_command() {
    if Command::new("node").arg("--version").output().is_err() {
        return tier::skipped("there is no node to run WebAssembly");
    }
    let workspace = new_workspace();
    write_vectors(&workspace.path("vectors.npy"));
    let review = ["review", "vectors.npy", "--live", "--count", "150", "--classes", "ant,bee,cow,dog"];
    workspace.run(&review).with_code(0);
    // The first 60 rows are answered, as on the page: typical samples, random ones, and some that the model is to choose.
    let mut reader = csv::Reader::from_path(workspace.path("review.csv")).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let mut list = "file,label,drawn\n".to_owned();
    let mut answers = BTreeMap::new();
    for row in &rows[..60] {
        let label = class(row[0].parse().unwrap());
        answers.insert(row[0].to_owned(), label);
        list.extend([&row[0], ",", label, ",", &row[6], "\n"]);
    }
    let of_answers = fit_of_page(&workspace, &answers);
    assert_eq!(
        of_answers["labels"], 18,
        "three in ten answers are random, and only these say how good the model is"
    );

    fs::write(workspace.path("review.csv"), list).unwrap();
    workspace.run(&["label", "vectors.npy", "review.csv", "--labels", "labels.csv"]).with_code(0);
    let train =
        ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run", "--quiet"];
    workspace.run(&[&train[..], &["--set", "network.dimensions=64"]].concat()).with_code(0);
    let next = ["review", "run", "--live", "--random", "0", "--count", "300", "--force"];
    workspace.run(&next).with_code(0);
    let of_run = fit_of_page(&workspace, &BTreeMap::new());
    for field in ["kept", "labels"] {
        assert_eq!(of_answers[field], of_run[field], "{field}: the same labels, by page and by list");
    }

    // The rows come in the order of the command, with its predictions.
    let command: Vec<&Value> =
        of_run["rows"].as_array().unwrap().iter().filter(|row| row["why"] == "margin").collect();
    let page = by_margin(&of_run);
    assert!(command.len() >= 100, "{}", command.len());
    for (row, expected) in page.iter().zip(&command) {
        assert_eq!(row["given"][0], row["predicted"], "{row}");
        let [by_command, by_page] =
            [&row["given"][1], &row["confidence"]].map(|number| number.as_f64().unwrap());
        assert!((by_command - by_page).abs() < TOLERANCE, "{row}");
        let [margin, expected_margin] = [row, *expected].map(|row| row["margin"].as_f64().unwrap());
        assert!(
            row["file"] == expected["file"] || (margin - expected_margin).abs() < TOLERANCE,
            "{row} {expected}"
        );
    }
    // The page of the answers fits the same model before they are in a list. Folds are drawn by the numbers of the samples, which
    // change then, and an average of two heads has its weights from the folds: a few predictions near a tie differ.
    let of_run: BTreeMap<&str, &Value> =
        page.iter().map(|row| (row["file"].as_str().unwrap(), row)).collect();
    let mut same = Vec::new();
    for row in by_margin(&of_answers) {
        let Some(other) = of_run.get(row["file"].as_str().unwrap()) else { continue };
        same.push(row["predicted"] == other["predicted"]);
    }
    let differ = same.iter().filter(|same| !**same).count();
    assert!(same.len() >= 30 && differ <= same.len() / 20, "{differ} of {}", same.len());
}

#[test]
fn page_of_images_without_features_is_refused() {
    let workspace = new_workspace();
    workspace.images("photos", 20, 12);
    let refused = workspace.run(&["review", "photos", "--live"]).with_code(2);
    refused.reports(&["--live needs features, and without pretrained weights images have none"]);
    assert!(!workspace.path("review.csv").exists());
}
