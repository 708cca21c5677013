//! Photos as they are: large images are shrunk once, and the model sees the same pixels everywhere.

use std::fs;

use calmix_testkit::workspace::Workspace;
use calmix_torch::core::matrix::Matrix;
use calmix_torch::metrics::calibrator::Calibrator;
use calmix_torch::run::model_info::ModelInfo;
use calmix_torch::run::tensor_files::predictions_file;
use serde_json::Value;

use super::near::assert_near;
use super::predict::rows;
use crate::program::new_workspace;

fn large_photos() -> Workspace {
    let workspace = new_workspace();
    for (class, shade) in [("cat", 40), ("dog", 200)] {
        workspace.images_of(&format!("photos/{class}"), shade, 10, [53, 41]);
    }
    // Not above the rule.
    workspace.images_of("photos/unlabelled", 120, 8, [30, 16]);
    workspace
}

#[test]
fn prepare_train_evaluate_and_predict_see_the_same_pixels() {
    let workspace = large_photos();
    let prepared = workspace.run(&["prepare", "photos", "--shrink", "16"]).with_code(0);
    prepared.prints(&["20 large images shrunk to a shorter side of 16 pixels", "--prepared prepared/photos"]);
    let full = workspace.run(&["prepare", "photos", "--shrink", "off", "--to", "full"]).with_code(0);
    assert!(!full.stdout.contains("shrunk"), "{}", full.stdout);
    let data = |text: &str| text.lines().find(|line| line.starts_with("data: ")).unwrap().to_owned();
    assert_ne!(data(&prepared.stdout), data(&full.stdout));
    workspace
        .run(&["prepare", "photos", "--shrink", "5", "--to", "none"])
        .with_code(2)
        .reports(&["16 to 16384"]);

    // As `prepare` suggests it: the table says what its rule is.
    let more = ["--prepared", "prepared/photos", "--run-dir", "run", "--set", "labels.validation=0.5"];
    workspace.end(workspace.folder_training("photos", &more)).with_code(0);
    let info: ModelInfo =
        serde_json::from_slice(&fs::read(workspace.path("run/model.json")).unwrap()).unwrap();
    assert_eq!(info.shrink, Some(16));
    let said = fs::read_dir(workspace.path("run/predictions")).unwrap().map(|entry| entry.unwrap().path());
    let said =
        said.filter(|path| path.to_string_lossy().contains("step-000000002-validation")).max().unwrap();
    let said = predictions_file::from_bytes(&fs::read(said).unwrap()).unwrap();
    let map = info.calibration.as_ref().map_or(Calibrator::IDENTITY, |fitted| fitted.calibrator.clone());
    let found = workspace.run(&[
        "predict",
        "run",
        "photos",
        "--threads",
        "1",
        "--format",
        "jsonl",
        "--probabilities",
    ]);
    let found = rows(&found.with_code(0).stdout);
    assert!(!said.ids.is_empty());
    let probabilities = |row: &Value| -> Vec<f32> {
        let all = row["probabilities"].as_array().unwrap();
        all.iter().map(|p| p.as_f64().unwrap() as f32).collect()
    };
    for (&id, logits) in said.ids.iter().zip(said.matrix().unwrap().iter()) {
        let mut expected = vec![0.0; 2];
        map.probabilities_into(logits, &mut expected).unwrap();
        assert_near(&probabilities(&found[id as usize]), &expected, &format!("sample {id}"));
    }

    // The rule shows: without it, the same image is another one to the model.
    let whole = calmix::formats::decode::decode(
        &fs::read(workspace.path("photos/cat/3.png")).unwrap(),
        &calmix::formats::decode::DecodeLimits::default(),
    );
    let options = calmix::model::ModelOptions { threads: Some(1), ..Default::default() };
    let model = calmix::Model::load_with(workspace.path("run"), &options).unwrap();
    let whole = whole.unwrap();
    let (mut view, mut scratch) = (vec![0; 8 * 8 * 3], calmix_torch::data::augment::Scratch::default());
    model.transform().evaluation(&whole, &mut scratch, &mut view).unwrap();
    let unruled = model.logits(&view).unwrap();
    let unruled = Matrix::new(&unruled, 1, 2).unwrap().iter().next().unwrap().to_vec();
    let ruled = model.predict(&[whole]).unwrap().remove(0);
    let row = found.iter().find(|row| row["path"] == "photos/cat/3.png").unwrap();
    assert_eq!(ruled.probabilities, probabilities(row));
    assert_ne!(model.prediction(&unruled).unwrap().probabilities, ruled.probabilities);

    // Another dataset of large images, by the model's rule and not by the usual one.
    let arguments = ["evaluate", "run", "--on", "photos", "--json"];
    let on: Value = serde_json::from_str(&workspace.run(&arguments).with_code(0).stdout).unwrap();
    let wrong = found[..20].iter().zip(["cat"; 10].iter().chain(&["dog"; 10]));
    let wrong = wrong.filter(|(row, class)| row["label"] != **class).count();
    let error = on["evaluation"]["metrics"]["error"].as_f64().unwrap();
    assert!((error - wrong as f64 / 20.0).abs() < 1e-12, "{error}, {wrong} wrong");
}

/// A table of another rule is refused if the user asks for one.
#[test]
fn a_table_of_another_rule_is_refused_if_one_is_named() {
    let workspace = large_photos();
    workspace.run(&["prepare", "photos", "--shrink", "16"]).with_code(0);
    let more = ["--prepared", "prepared/photos", "--run-dir", "run", "--shrink", "24"];
    let refused = workspace.end(workspace.folder_training("photos", &more)).with_code(2);
    refused.reports(&["prepared/photos: prepared as another source or with other settings"]);
}
