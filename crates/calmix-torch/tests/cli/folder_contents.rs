//! What is in a folder, truly: empty classes, few images, duplicates, and files that one bad name must not hide.

use serde_json::Value;

use crate::program::new_workspace;

/// Twice as many cats as dogs: alignment to equal classes would ask for as many pseudo-labelled dogs.
#[test]
fn uneven_labels_are_named_where_predictions_are_aligned() {
    let workspace = new_workspace();
    workspace.images("photos/cat", 0, 8);
    workspace.images("photos/dog", 60, 3);
    workspace.images("photos/unlabelled", 120, 8);
    let more = ["--set", "method.base=softmatch", "--set", "labels.keep=all", "--set", "labels.validation=0"];
    let warned = workspace.end(workspace.folder_training("photos", &more)).with_code(0);
    warned.reports(&[
        "warning: `dog` has 3 labels and `cat` has 8, but softmatch assumes equally frequent classes. If the unlabelled \
         samples are as imbalanced, set method.softmatch.target=labelled\n",
    ]);
    let labelled = [&more[..], &["--set", "method.softmatch.target=labelled"]].concat();
    let silent = workspace.end(workspace.folder_training("photos", &labelled)).with_code(0);
    assert!(!silent.stderr.contains("aligns its predictions"), "{}", silent.stderr);
}

#[test]
fn short_labels_are_warned_about_before_training() {
    let workspace = new_workspace();
    workspace.images("photos/cat", 0, 8);
    workspace.images("photos/dog", 60, 3);
    workspace.images("photos/unlabelled", 120, 8);
    let more = ["--set", "labels.keep=per-class", "--set", "labels.count=6", "--set", "labels.validation=0"];
    let trained = workspace.end(workspace.folder_training("photos", &more)).with_code(0);
    trained.reports(&[
        "warning: labels.count requests 6 labels per class, but 1 of 2 classes has fewer: `dog` 3\n",
    ]);
    let before = trained.stderr.find("labels.count requests").unwrap();
    assert!(before < trained.stderr.find("step 1/2").unwrap(), "{}", trained.stderr);
}

#[test]
fn predictions_have_names() {
    let workspace = new_workspace();
    workspace.images("photos/train/cat", 0, 4);
    workspace.images("photos/train/dog", 60, 4);
    workspace.images("photos/test/cat", 120, 2);
    workspace.images("photos/test/dog", 180, 2);
    workspace.end(workspace.folder_training("photos", &["--run-dir", "run"])).with_code(0);
    let predictions = "run/predictions/step-000000002-test-ema.safetensors";
    let shown = workspace.run(&["inspect", predictions]).with_code(0);
    shown.prints(&["4 predictions after step 2\n", "test/cat/0.png ", "test/dog/1.png "]);
    let json = workspace.run(&["inspect", predictions, "--json"]).with_code(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["kind"], "predictions");
    let first = &json["predictions"][0];
    assert_eq!((&first["sample"], &first["label"]), (&"test/cat/0.png".into(), &"cat".into()));
    assert!(first["confidence"].as_f64().unwrap() >= 0.5 && first["predicted"].is_string());
}
