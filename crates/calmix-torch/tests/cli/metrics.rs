//! The metrics of a run: their confidence intervals, and the labels that fitted its calibrator.

use std::fs;
use std::path::Path;

use calmix_testkit::workspace::{CommandOutput, TINY, Workspace};
use serde_json::Value;

use crate::program::new_workspace;

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A training of a second on a folder.
fn train_on(workspace: &Workspace, folder: &str, run: &str, settings: &[&str]) -> CommandOutput {
    let train = ["train", "cpu-folder", "--data", folder, "--threads", "1", "--run-dir", run];
    let mut command = workspace.command(&train);
    for setting in TINY.iter().filter(|setting| !setting.starts_with("labels.count")).chain(settings) {
        command.args(["--set", setting]);
    }
    workspace.end(command).with_code(0)
}

/// Four images are too few for a reliable estimate, whatever their error.
#[test]
fn four_images_are_too_few_to_evaluate() {
    let workspace = new_workspace().with_photos();
    let trained = train_on(&workspace, "photos", "run", &["train.steps=8", "labels.validation=0.2"]);
    trained.prints(&[
        "validation, 4 images ",
        "Too few labels for an estimate: the error may be anywhere from ",
        "(4 validation images); 46",
    ]);
    workspace.run(&["inspect", "run"]).with_code(0).prints(&["too few images for a reliable estimate: "]);
    let evaluated = workspace.run(&["evaluate", "run", "--json"]).with_code(0);
    let evaluated: Value = serde_json::from_str(&evaluated.stdout).unwrap();
    let limits = &evaluated["evaluations"][0]["intervals"]["error"];
    let width = limits["high"].as_f64().unwrap() - limits["low"].as_f64().unwrap();
    // Clopper and Pearson's interval of four images is at least this wide, at any number of errors.
    assert!(width > 0.6, "{limits}");
}

/// The end of a run explains a missing temperature, with its own numbers.
#[test]
fn a_run_without_a_temperature_says_why() {
    let workspace = new_workspace().with_photos().with_validation_folder();
    fs::remove_dir_all(workspace.path("own/val")).unwrap();
    let labels = ["train.steps=2", "labels.keep=per-class", "labels.count=4"];
    for (run, held_out, sentence) in [
        ("none", "labels.validation=0", "no label was held out, and a fit needs at least 10"),
        ("few", "labels.validation=0.5", "only 4 labels were held out, and a fit needs at least 10"),
    ] {
        let trained = train_on(&workspace, "own", run, &[&labels[..], &[held_out]].concat());
        let sentence = format!(
            "no temperature was fitted: {sentence};\nthere are too few training labels to use instead"
        );
        trained.prints(&[&sentence]);
        workspace.run(&["inspect", run]).with_code(0).prints(&[&sentence]);
        workspace.run(&["evaluate", run]).with_code(0).prints(&[&sentence]);
    }
}

/// Fifty held-out labels, which the recipe holds out by itself, give a temperature; and labels that fitted it do not
/// evaluate it.
#[test]
fn fifty_held_out_labels_give_a_temperature() {
    let workspace = new_workspace().with_garments();
    let asked =
        workspace.end(workspace.training(
            8,
            &["--run-dir", "asked", "--set", "labels.count=10", "--set", "labels.validation=0.5"],
        ));
    asked.reports(&["50 labelled, 50 unlabelled, 50 validation, 40 test"]);
    let inspected = workspace.run(&["inspect", "asked"]).with_code(0);
    inspected.prints(&[
        "temperature fitted on 50 held-out labels",
        "on these images, so each is evaluated by a fit without it",
    ]);
    let scaling = &json(&workspace.path("asked/result.json"))["scaling"];
    assert_eq!((&scaling["fitted_on"], &scaling["samples"]), (&"held-out".into(), &50.into()), "{scaling}");

    // The recipe's own rule: a fifth of the labels is held out for evaluation.
    let fifth = workspace.end(workspace.training(8, &["--run-dir", "fifth", "--set", "labels.count=10"]));
    fifth.reports(&["80 labelled, 80 unlabelled, 20 validation, 40 test"]);
    let inspected = workspace.run(&["inspect", "fifth"]).with_code(0);
    inspected.prints(&["temperature fitted on 20 held-out labels"]);
    let model = json(&workspace.path("fifth/model.json"));
    assert_eq!(model["calibration"]["samples"], 20, "{model}");
    assert_eq!(model["calibration"]["calibrator"]["kind"], "temperature", "{model}");
}

/// The user's own validation images choose and calibrate, and no training label is spent.
#[test]
fn the_folder_val_fits_the_temperature() {
    let workspace = new_workspace().with_photos().with_validation_folder();
    let trained = train_on(&workspace, "own", "run", &["train.steps=8", "selection=best-validation"]);
    trained.reports(&["10 labelled, 10 unlabelled, 12 validation, 8 test"]);
    trained.prints(&["test, 8 images "]);
    workspace.run(&["inspect", "run"]).with_code(0).prints(&[
        "validation, 12 images ",
        "test, 8 images ",
        "temperature fitted on 12 labels of the validation split",
    ]);
    let result = json(&workspace.path("run/result.json"));
    assert_eq!(result["scaling"]["samples"], 12, "{result}");

    // Labels that came later take the place of these, and the run's own evaluate them.
    workspace.images("later/cat", 41, 10);
    workspace.images("later/dog", 201, 10);
    workspace.run(&["calibrate", "run", "--on", "later"]).with_code(0).prints(&["new labels, 20 images "]);
    let evaluated = workspace.run(&["evaluate", "run"]).with_code(0);
    evaluated.prints(&["validation, 12 images ", "temperature fitted on 20 new labels"]);
    assert!(!evaluated.stdout.contains("evaluated by a fit without it"), "{}", evaluated.stdout);
}

/// Labels that came after training calibrate a model, without training it again.
#[test]
fn new_labels_calibrate_a_model() {
    let workspace = new_workspace().with_photos().with_validation_folder();
    train_on(&workspace, "photos", "run", &["train.steps=8", "labels.validation=0"]);
    for (class, shade) in [("cat", 41), ("dog", 201)] {
        workspace.images(&format!("own/val/{class}"), shade, 6);
        workspace.images(&format!("own/test/{class}"), shade, 4);
    }
    let before = fs::read(workspace.path("run/model.json")).unwrap();
    let weights = fs::read(workspace.path("run/model.safetensors")).unwrap();
    let calibrated = workspace.run(&["calibrate", "run", "--on", "own/val"]).with_code(0);
    calibrated.prints(&[
        "new labels, 12 images       uncalibrated",
        "at temperature ",
        "  confidence gap, points ",
        "on these images, so each is evaluated by a fit without it",
        "temperature fitted on 12 new labels",
        "too few images for a reliable estimate: ",
        "written to run/model.json; the previous version is in run/model.previous.json\n",
    ]);
    let map = json(&workspace.path("run/model.json"))["calibration"].clone();
    assert_eq!((&map["fitted_on"], &map["samples"]), (&"later".into(), &12.into()), "{map}");
    assert!(map["origin"]["folder"].as_str().unwrap().ends_with("own/val"), "{map}");
    assert!(map["raw"]["nll"].is_number() && map["calibrated"]["nll"].is_number(), "{map}");
    assert_eq!(fs::read(workspace.path("run/model.safetensors")).unwrap(), weights);
    // The new labels are what sets and abstaining rest on, and metrics on them say so.
    let held_out = json(&workspace.path("run/model.json"))["held_out"].clone();
    assert_eq!(held_out["right"].as_array().unwrap().len(), 12, "{held_out}");
    let evaluated = workspace.run(&["evaluate", "run", "--on", "own/val"]).with_code(0);
    evaluated.reports(&["warning: the model was calibrated on these images"]);
    workspace
        .run(&["inspect", "run"])
        .with_code(0)
        .prints(&["calibration refitted on the labels of [HERE]/own/val"]);

    // Few labels, unknown classes, several subsets: nothing is written.
    let written = fs::read(workspace.path("run/model.json")).unwrap();
    assert_ne!(before, written);
    let few = workspace.run(&["calibrate", "run", "--on", "own/test"]).with_code(2);
    few.reports(&["only 8 labelled images, and fitting a temperature needs at least 10"]);
    let several = workspace.run(&["calibrate", "run", "--on", "own"]).with_code(2);
    several.reports(&[
        "several subsets have labels: train, val, test\n",
        "try: choose one of them: --subset test\n",
    ]);
    workspace.run(&["calibrate", "run", "--on", "own", "--subset", "val"]).with_code(0);
    fs::write(workspace.path("run/model.json"), &written).unwrap();
    fs::rename(workspace.path("own/val/dog"), workspace.path("own/val/wolf")).unwrap();
    let unknown = workspace.run(&["calibrate", "run", "--on", "own/val"]).with_code(2);
    unknown.reports(&["the model has no class wolf\n", "the classes of the model are cat, dog\n"]);
    assert_eq!(fs::read(workspace.path("run/model.json")).unwrap(), written);
}
