//! `calmix calibrate`: which labels it takes, and how to go back.

use std::fs;

use calmix_testkit::workspace::Workspace;
use serde_json::Value;

use super::fixture::Fixture;

/// The run of the photos, and images of its classes that it was not trained on.
fn workspace_with_later_labels() -> Workspace {
    let workspace = Fixture::Photos.copy();
    workspace.images("later/cat", 41, 6);
    workspace.images("later/dog", 201, 6);
    workspace
}

/// An image without a label counts, too: the model was trained on it with a pseudo-label.
#[test]
fn training_images_are_left_out() {
    let workspace = workspace_with_later_labels();
    let before = fs::read(workspace.path("run/model.json")).unwrap();
    fs::create_dir_all(workspace.path("old/cat")).unwrap();
    for name in workspace.names("photos/unlabelled") {
        let image = workspace.path("photos/unlabelled").join(&name);
        fs::copy(image, workspace.path("old/cat").join(name)).unwrap();
    }
    let refused = workspace.run(&["calibrate", "run", "--on", "old"]).with_code(2);
    refused.reports(&[
        "the model was trained on 12 of 12 labelled images (",
        "and is more confident on them than on new images",
        "try: add labelled images that the model was not trained on",
    ]);
    assert_eq!(fs::read(workspace.path("run/model.json")).unwrap(), before);
    let copy = workspace.path("later/cat/copy.png");
    fs::copy(workspace.path("photos/unlabelled/3.png"), &copy).unwrap();
    let taken =
        workspace.run(&["calibrate", "run", "--on", "later", "--threads", "1", "--json"]).with_code(0);
    taken.reports(&[
        "warning: the model was trained on 1 of 13 labelled images (cat/copy.png); they are left out, because",
    ]);
    let taken: Value = serde_json::from_str(&taken.stdout).unwrap();
    assert_eq!((&taken["trained_on"], &taken["calibration"]["samples"]), (&1.into(), &12.into()));
    assert_eq!(taken["checked_against_training"], true);

    // Where the dataset of the run is gone, nothing can be compared.
    fs::rename(workspace.path("photos"), workspace.path("elsewhere")).unwrap();
    let unchecked = workspace.run(&["calibrate", "run", "--on", "later", "--json"]).with_code(0);
    unchecked.reports(&["warning: cannot check whether the model was trained on these images: "]);
    let unchecked: Value = serde_json::from_str(&unchecked.stdout).unwrap();
    assert_eq!(unchecked["checked_against_training"], false);
}

#[test]
fn previous_calibration_is_kept() {
    let workspace = workspace_with_later_labels();
    let [info, previous] = ["run/model.json", "run/model.previous.json"].map(|name| workspace.path(name));
    let trained = fs::read(&info).unwrap();
    let calibrated = workspace.run(&["calibrate", "run", "--on", "later"]).with_code(0);
    calibrated.prints(&["written to run/model.json; the previous version is in run/model.previous.json\n"]);
    assert!(!calibrated.stderr.contains("fewer than"), "{}", calibrated.stderr);
    assert_eq!(fs::read(&previous).unwrap(), trained);
    let first = fs::read(&info).unwrap();

    workspace.images("fewer/cat", 41, 11);
    let fewer = workspace.run(&["calibrate", "run", "--on", "fewer", "--json"]).with_code(0);
    fewer.reports(&[
        "warning: no labels here for 1 class of the model: dog\n",
        "warning: the calibration is refitted on 11 labels, fewer than the 12 of the previous fit\n",
    ]);
    let json: Value = serde_json::from_str(&fewer.stdout).unwrap();
    assert_eq!(json["missing_classes"], serde_json::json!(["dog"]));
    assert_eq!(fs::read(&previous).unwrap(), first);

    fs::rename(&previous, &info).unwrap();
    workspace.run(&["evaluate", "run"]).with_code(0).prints(&["temperature fitted on 12 new labels"]);
}
