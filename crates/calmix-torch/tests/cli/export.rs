//! `calmix export`: onnxruntime answers as `calmix predict` does, from the files in the folder alone.

use std::fs;
use std::path::Path;

use calmix_testkit::onnxruntime::{compare, is_near, run};
use calmix_testkit::workspace::Workspace;
use serde_json::Value;

use super::fixture::Fixture;
use super::head::train;
use super::predict::rows;

/// What onnxruntime answers for images, which Pillow resizes as the model card says, and what `calmix predict` answered.
const ANSWERS: &str = "
import json, re, sys
from pathlib import Path
import numpy as np

folder, predicted = Path(sys.argv[1]), Path(sys.argv[2])
card = (folder / 'README.md').read_text()
[code] = re.findall(r'```python\\n(.*?)```', card, re.S)
code = code.replace('\"model.onnx\"', repr(str(folder / 'model.onnx')))
rows = []
for line in predicted.read_text().splitlines():
    row = json.loads(line)
    if row['error'] is None:
        names = {}
        exec(code.replace('\"photo.jpg\"', repr(row['path'])).replace('print(', '('), names)
        found, classes = names['found'], names['classes']
        change = np.abs(found['probabilities'][0] - np.array(row['probabilities'])).max()
        same = classes[found['label'][0]] == row['label'] and bool(found['abstain'][0]) == row['abstain']
        same = same and sorted(np.array(classes)[found['set'][0]]) == sorted(row['set'])
        rows.append({'change': float(change), 'same': bool(same)})
print(json.dumps(rows))
";

/// Exports a run and compares its answers with those of `predict`.
fn check(workspace: &Workspace, run_folder: &str, images: &str, more: &[&str], most: f64) {
    let to = format!("{run_folder}-onnx");
    let exported = workspace.run(&[&["export", run_folder, "--to", &to][..], more].concat()).with_code(0);
    exported.prints(&["model.onnx", "README.md", "test_data_set_0"]);
    let found = compare(&workspace.path(&to));
    is_near(&found, "probabilities", most);
    for output in ["label", "set", "abstain"] {
        is_near(&found, output, 0.0);
    }
    let out = format!("{run_folder}.jsonl");
    let predict = ["predict", run_folder, images, "--probabilities", "--threads", "1", "--out", &out];
    workspace.run(&predict).with_code(0);
    let script = workspace.path("answers.py");
    fs::write(&script, ANSWERS).unwrap();
    // The paths in the rows are relative.
    let rows_file = workspace.path(&out);
    let absolute: Vec<String> = rows(&fs::read_to_string(&rows_file).unwrap())
        .into_iter()
        .map(|mut row| {
            let path = workspace.path(row["path"].as_str().unwrap());
            row["path"] = path.to_str().unwrap().into();
            row.to_string()
        })
        .collect();
    fs::write(&rows_file, absolute.join("\n")).unwrap();
    let answers = run(&script, &[&workspace.path(&to), &rows_file]);
    let answers = answers.as_array().unwrap();
    assert!(!answers.is_empty());
    for answer in answers {
        assert!(answer["change"].as_f64().unwrap() <= most && answer["same"] == true, "{answer}");
    }
    metadata_is_of_the_run(&workspace.path(run_folder), &found["metadata"]);
    let card = fs::read_to_string(workspace.path(&to).join("README.md")).unwrap();
    card_is_of_the_run(&workspace.path(run_folder), &to, &card);
}

/// Every number and name of the model card is compared with the files of the run.
fn card_is_of_the_run(run: &Path, name: &str, card: &str) {
    let read = |file: &str| -> Value { serde_json::from_slice(&fs::read(run.join(file)).unwrap()).unwrap() };
    let (info, summary, result) = (read("model.json"), read("summary.json"), read("result.json"));
    let number = |of: &Value| of.as_f64().unwrap_or_else(|| panic!("{of} is not a number"));
    let evaluations = result["evaluations"].as_array().unwrap();
    let held_out = info["held_out"]["label"].as_array().unwrap().len();
    let what = if info.get("head").is_some() { "A head on frozen features of a" } else { "A" };
    let parts = [
        format!("# {name}\n\n{what} {}", info["network"].as_str().unwrap()),
        format!(
            "for images of {0}×{0} pixels, with {1} classes",
            info["size"],
            info["classes"].as_array().unwrap().len()
        ),
        format!(
            "trained on {} labelled and {} unlabelled samples",
            summary["labelled"], summary["unlabelled"]
        ),
        format!("at least 90%, by {held_out} labels"),
        format!("a temperature of {:.4}", number(&info["calibration"]["calibrator"]["temperature"])),
        "for side in image.size], Image.".to_owned() + &info["filter"].as_str().unwrap().to_uppercase(),
        format!("side * {} // min(image.size)", info["resize"]),
    ];
    let of = |split: &&str| evaluations.iter().any(|evaluation| evaluation["split"] == *split);
    let split = ["test", "validation"].into_iter().find(of).unwrap();
    let shown = evaluations.iter().find(|evaluation| evaluation["split"] == split).unwrap();
    for part in parts {
        assert!(card.contains(&part), "{part} is not in {card}");
    }
    let calibrated = shown.get("calibrated").unwrap_or(shown);
    let accuracy = 1.0 - number(&calibrated["metrics"]["error"]);
    let dataset = &summary["dataset"];
    for part in [
        format!("- name: \"{name}\"\n"),
        format!("      name: {dataset}\n      type: {dataset}\n      split: {split}\n"),
        format!("    - type: accuracy\n      name: \"accuracy\"\n      value: {accuracy}\n"),
        format!("On {} {split} samples", shown["samples"]),
    ] {
        assert!(card.contains(&part), "{part} is not in {card}");
    }
    let keys = ["error", "confidence_gap", "ece_15", "class_wise_ece", "nll", "brier"];
    let rows: Vec<&str> = card.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert_eq!(rows.len(), keys.len(), "a row for each metric: {rows:?}");
    for (row, key) in rows.into_iter().zip(keys) {
        let value = number(&calibrated["metrics"][key]);
        let between = match calibrated["intervals"].get(key) {
            Some(interval) => {
                format!("{:.4} to {:.4}", number(&interval["low"]), number(&interval["high"]))
            }
            // Exact intervals are not stored.
            None => row.rsplit('|').nth(1).unwrap().trim().to_owned(),
        };
        // Zero has no sign.
        let shown = format!("| {value:.4} | {between} |").replace("-0.0000", "0.0000");
        assert!(row.ends_with(&shown), "{key}: {row}");
        let ends: Vec<f64> = between.split(" to ").map(|end| end.parse().unwrap()).collect();
        // The row has four digits.
        let inside = (ends[0] - 5e-5..=ends[1] + 5e-5).contains(&value);
        assert!(ends[0] <= ends[1] && inside, "{key}: {row}");
    }
}

/// Every field of the metadata is compared with `model.json`.
fn metadata_is_of_the_run(run: &Path, metadata: &Value) {
    let info: Value = serde_json::from_slice(&fs::read(run.join("model.json")).unwrap()).unwrap();
    let read = |key: &str| {
        let text = metadata[key].as_str().unwrap();
        serde_json::from_str::<Value>(text).unwrap_or_else(|_| text.into())
    };
    for key in ["classes", "network", "size", "resize", "filter", "mean", "std", "calibration_blake3"] {
        assert_eq!(read(key), info[key], "{key}");
    }
    assert_eq!(read("shrink"), info.get("shrink").cloned().unwrap_or(Value::Null));
    assert_eq!(read("weights_blake3"), info["blake3"]);
    assert_eq!(read("reference_blake3"), info["reference"]);
    assert_eq!(read("calibrator"), info["calibration"]["calibrator"]);
    assert_eq!(read("held_out_labels"), info["held_out"]["label"].as_array().unwrap().len());
    assert_eq!((read("coverage"), read("precision")), (0.9.into(), 0.9.into()));
    assert_eq!(read("sets"), "lac");
    assert!(read("set_thresholds").as_array().is_some_and(|all| all.len() == 2));
    if let Some(head) = info.get("head") {
        assert_eq!(read("features"), head["features"]);
        assert_eq!(read("dimensions"), head["dimensions"]);
        assert_eq!(read("projection_blake3"), head["projection"]);
        assert_eq!(read("backbone_blake3"), head["backbone"]);
        assert_eq!(read("backbone_precision"), head["precision"]);
    }
    assert_eq!(metadata["calmix_version"], env!("CARGO_PKG_VERSION"));
    let known = ["calmix_commit", "answer_threshold"];
    let count = metadata.as_object().unwrap().len();
    let of_head = if info.get("head").is_some() { 5 } else { 0 };
    assert_eq!(count, 18 + known.len() + of_head, "a field that this test does not compare: {metadata}");
}

#[test]
fn network_answers_as_predict_does() {
    let workspace = Fixture::Photos.copy();
    check(&workspace, "run", "photos", &[], 1e-5);
    let card = fs::read_to_string(workspace.path("run-onnx/README.md")).unwrap();
    assert!(card.starts_with("---\nlibrary_name: onnx\npipeline_tag: image-classification\n"), "{card}");
    // No second export over the first.
    workspace.run(&["export", "run", "--to", "run-onnx"]).with_code(2).reports(&["run-onnx: exists already"]);
}

#[test]
fn heads_answer_as_predict_does() {
    let workspace = Fixture::Weights.copy();
    for (run, kind) in [("linear", "linear"), ("hidden", "hidden")] {
        let more = ["--set", &format!("network.head={kind}"), "--set", "train.precision=f32"];
        train(&workspace, run, &more).with_code(0);
        check(&workspace, run, "own/test", &[], 5e-4);
    }
}

#[test]
fn what_no_graph_computes_is_refused() {
    let workspace = Fixture::Photos.copy();
    let refused = |more: &[&str], code: i32, says: &[&str]| {
        workspace.run(&[&["export", "run", "--to", "out"][..], more].concat()).with_code(code).reports(says);
        assert!(!workspace.path("out").exists());
    };
    refused(&["--sets", "aps"], 2, &["randomised", "--sets lac"]);
    refused(&["--coverage", "1"], 2, &["--coverage is 1"]);
    // A card without the metrics of the run would be wrong.
    let result = workspace.path("run/result.json");
    let whole = fs::read(&result).unwrap();
    fs::write(&result, "{").unwrap();
    refused(&[], 1, &["result.json"]);
    fs::write(&result, whole).unwrap();
    let model = workspace.path("run/model.safetensors");
    let mut bytes = fs::read(&model).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::remove_file(&model).unwrap();
    fs::write(&model, bytes).unwrap();
    refused(&[], 1, &["the hash of the weights"]);
    workspace.run(&["export", "photos", "--to", "out"]).with_code(2).reports(&["there is no run"]);
}
