//! `calmix calibrate` and `calmix evaluate` of a run on vectors, as a user runs them: without libtorch.

use std::fs;
use std::path::Path;

use crate::planted::{calmix, class, text, write_labels, write_npy};
use serde_json::Value;
use tempfile::TempDir;

/// A run on rows 0 to 299, 60 of them labelled, and 90 labelled rows that it has not seen.
fn trained() -> TempDir {
    let temp = tempfile::tempdir().unwrap();
    write_npy(&temp.path().join("vectors.npy"), 0..300, false);
    write_labels(&temp.path().join("labels.csv"), 0, 60);
    write_npy(&temp.path().join("later.npy"), 300..390, false);
    write_labels(&temp.path().join("later.csv"), 300, 90);
    train(temp.path());
    temp
}

/// Trains the folder `run` on `vectors.npy`.
#[track_caller]
fn train(folder: &Path) {
    let train = ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run"];
    let quick = ["--set", "network.folds=3", "--threads", "2"];
    succeeds(folder, &[&train[..], &quick[..]].concat(), &[]);
}

/// Runs a command that succeeds, and prints all of `expected`.
#[track_caller]
fn succeeds(folder: &Path, arguments: &[&str], expected: &[&str]) -> String {
    ends(folder, arguments, 0, expected)
}

#[track_caller]
fn ends(folder: &Path, arguments: &[&str], code: i32, expected: &[&str]) -> String {
    let output = calmix(folder, arguments);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    for expected in expected {
        assert!(said.contains(expected), "{arguments:?}: {expected}: {said}");
    }
    String::from_utf8(output.stdout).unwrap()
}

const CALIBRATE: [&str; 6] = ["calibrate", "run", "--on", "later.npy", "--labels", "later.csv"];

#[test]
fn calibration_is_refitted_on_new_vectors() {
    let temp = trained();
    let info = temp.path().join("run/model.json");
    let before = fs::read(&info).unwrap();
    let printed = succeeds(
        temp.path(),
        &CALIBRATE,
        &[
            "new labels, 90 vectors",
            "the calibrator was fitted on these vectors, so each is evaluated by a fit without it",
            "fitted on 90 new labels",
            "written to run/model.json; the previous version is in run/model.previous.json\n",
            "next: calmix evaluate run",
        ],
    );
    assert!(!printed.contains("image") && !printed.contains("step"), "{printed}");
    assert_eq!(fs::read(temp.path().join("run/model.previous.json")).unwrap(), before);
    let after: Value = serde_json::from_slice(&fs::read(&info).unwrap()).unwrap();
    assert_eq!(after["calibration"]["fitted_on"], "later");
    assert_eq!(after["held_out"]["label"].as_array().unwrap().len(), 90);
    succeeds(temp.path(), &["inspect", "run"], &["calibration refitted on the labels of", "90 vectors"]);
    succeeds(temp.path(), &["predict", "run", "later.npy"], &[]);

    // Fewer labels, and none of the class `cow`.
    let rows = (0..40).filter(|row| row % 3 != 2);
    let labels: Vec<String> = rows.map(|row| format!("{row},{}", class(300 + row))).collect();
    fs::write(temp.path().join("few.csv"), format!("id,label\n{}\n", labels.join("\n"))).unwrap();
    write_npy(&temp.path().join("few.npy"), 300..340, false);
    let few = ["calibrate", "run", "--on", "few.npy", "--labels", "few.csv", "--json"];
    let printed = succeeds(
        temp.path(),
        &few,
        &[
            "warning: no labels here for 1 class of the model: cow\n",
            "warning: the calibration is refitted on 27 labels, fewer than the 90 of the previous fit\n",
        ],
    );
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["missing_classes"], serde_json::json!(["cow"]));
    assert_eq!(printed["checked_against_training"], true);
    assert_eq!(printed["calibration"]["samples"], 27);
}

#[test]
fn unusable_labels_for_calibration_are_refused() {
    let temp = trained();
    let info = fs::read(temp.path().join("run/model.json")).unwrap();
    // Too few that the model was not trained on, and none.
    write_npy(&temp.path().join("mixed.npy"), 290..309, false);
    write_labels(&temp.path().join("mixed.csv"), 290, 19);
    let mixed = ["calibrate", "run", "--on", "mixed.npy", "--labels", "mixed.csv"];
    let trained_on =
        "trained on 10 of 19 labelled vectors (mixed.npy[0], mixed.npy[1], mixed.npy[2], …), and";
    let add = "try: add labelled vectors that the model was not trained on, with a label or without";
    ends(temp.path(), &mixed, 2, &[trained_on, "fitting a temperature needs at least 10 others, not 9", add]);
    let own = ["calibrate", "run", "--on", "vectors.npy", "--labels", "labels.csv"];
    ends(
        temp.path(),
        &own,
        2,
        &["trained on 60 of 60 labelled vectors (", "and is more confident on them than on new vectors", add],
    );
    write_labels(&temp.path().join("nine.csv"), 300, 9);
    fs::write(temp.path().join("dog.csv"), "id,label\n0,dog\n1,ant\n").unwrap();
    fs::write(temp.path().join("wide.csv"), "v_0,v_1,label\n1,2,ant\n2,1,bee\n").unwrap();
    let refusals = [
        (&["--on", "no.npy"][..], "no.npy: does not exist"),
        (&["--on", "later.npy"], "there are no labelled vectors"),
        (
            &["--on", "later.npy", "--labels", "nine.csv"],
            "only 9 labelled vectors, and fitting a temperature",
        ),
        (&["--on", "later.npy", "--labels", "dog.csv"], "the model has no class dog"),
        (&["--on", "wide.csv"], "has vectors of 2 numbers, but run was trained on vectors of 16"),
        (&["--on", "later.npy", "--labels", "later.csv", "--device", "cuda"], "runs on the CPU"),
    ];
    for (arguments, expected) in refusals {
        ends(temp.path(), &[&["calibrate", "run"], arguments].concat(), 2, &[expected]);
    }
    assert_eq!(fs::read(temp.path().join("run/model.json")).unwrap(), info);
    assert!(!temp.path().join("run/model.previous.json").exists());

    // Without the vectors of the training, nothing can be compared.
    fs::rename(temp.path().join("vectors.npy"), temp.path().join("elsewhere.npy")).unwrap();
    let warning = "warning: cannot check whether the model was trained on these vectors: ";
    succeeds(temp.path(), &CALIBRATE, &[warning]);
}

/// Rows 290 to 299 were trained on without their labels; as numbers of 64 bits they are the same vectors.
#[test]
fn training_vectors_are_left_out_of_calibration() {
    let temp = trained();
    let info = fs::read(temp.path().join("run/model.json")).unwrap();
    write_labels(&temp.path().join("mixed.csv"), 290, 40);
    for (file, is_double) in [("mixed.npy", false), ("double.npy", true)] {
        write_npy(&temp.path().join(file), 290..330, is_double);
        let warning = format!(
            "warning: the model was trained on 10 of 40 labelled vectors ({file}[0], {file}[1], {file}[2], …); they are left \
             out, because it is more confident on them than on new vectors\n"
        );
        let arguments = ["calibrate", "run", "--on", file, "--labels", "mixed.csv", "--json"];
        let printed = succeeds(temp.path(), &arguments, &[&warning]);
        let printed: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(printed["trained_on"], 10);
        assert_eq!(printed["calibration"]["samples"], 30);
    }
    assert_ne!(fs::read(temp.path().join("run/model.json")).unwrap(), info);
}

#[test]
fn chosen_labels_are_left_out_of_calibration() {
    let temp = trained();
    write_npy(&temp.path().join("new.npy"), 400..440, false);
    write_labels(&temp.path().join("random.csv"), 400, 40);
    let list = fs::read_to_string(temp.path().join("random.csv")).unwrap();
    let mut lines = list.lines();
    let mut marked = format!("{},drawn\n", lines.next().unwrap());
    for (row, line) in lines.enumerate() {
        marked.extend([line, if row < 8 { ",chosen\n" } else { ",random\n" }]);
    }
    fs::write(temp.path().join("marked.csv"), marked).unwrap();
    let warning = "warning: 8 of 40 labelled vectors are marked as chosen and left out: they are not like new vectors\n";
    let arguments = ["calibrate", "run", "--on", "new.npy", "--labels", "marked.csv", "--json"];
    let printed = succeeds(temp.path(), &arguments, &[warning]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["calibration"]["samples"], 32);
}

/// Of a copied model nothing can be compared.
#[test]
fn evaluation_on_training_vectors_warns() {
    let temp = trained();
    let own =
        ["evaluate", "run", "--on", "vectors.npy", "--labels", "labels.csv", "--threads", "1", "--json"];
    let warning = "warning: the model was trained on 60 of 60 labelled vectors (vectors.npy[0], vectors.npy[1], \
                   vectors.npy[2], …), so these metrics are optimistic: evaluate on vectors that it was not trained on\n";
    let printed: Value = serde_json::from_str(&succeeds(temp.path(), &own, &[warning])).unwrap();
    assert_eq!(printed["checked_against_training"], true);
    assert_eq!(printed["trained_on"], 60);
    assert_eq!(printed["evaluation"]["samples"], 60);
    let later = ["evaluate", "run", "--on", "later.npy", "--labels", "later.csv", "--json"];
    let output = calmix(temp.path(), &later);
    assert!(!text(&output).contains("warning"), "{}", text(&output));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["trained_on"], 0);
    fs::create_dir(temp.path().join("copied")).unwrap();
    for name in ["model.json", "model.safetensors", "projection.safetensors"] {
        fs::copy(temp.path().join("run").join(name), temp.path().join("copied").join(name)).unwrap();
    }
    let copied = ["evaluate", "copied", "--on", "vectors.npy", "--labels", "labels.csv", "--json"];
    let warning = "warning: cannot check whether the model was trained on these vectors: ";
    let printed: Value = serde_json::from_str(&succeeds(temp.path(), &copied, &[warning])).unwrap();
    assert_eq!(printed["checked_against_training"], false);
    assert_eq!(printed["trained_on"], Value::Null);
}

#[test]
fn repeated_calibration_keeps_the_undo() {
    let temp = trained();
    let before = fs::read(temp.path().join("run/model.json")).unwrap();
    for _ in 0..2 {
        succeeds(temp.path(), &CALIBRATE, &[]);
        assert!(fs::read(temp.path().join("run/model.previous.json")).unwrap() == before);
    }
    assert!(fs::read(temp.path().join("run/model.json")).unwrap() != before);
}

/// As for training: any column may hold the labels, and without labels the options that name them are offered.
#[test]
fn label_column_is_taken_as_for_training() {
    let temp = tempfile::tempdir().unwrap();
    let write = |name: &str, rows: std::ops::Range<usize>| {
        let noise = |row: usize| (row * 7 % 10) as f32 / 10.0 + row as f32 / 1000.0;
        let line = |row: usize| format!("{row},{},{},{}\n", row % 3, noise(row), class(row));
        let lines: String = rows.map(line).collect();
        fs::write(temp.path().join(name), format!("id,v_0,v_1,section\n{lines}")).unwrap();
    };
    write("vectors.csv", 0..60);
    write("later.csv", 100..130);
    let train = ["train", "--features", "vectors.csv", "--label-column", "section", "--run-dir", "run"];
    succeeds(temp.path(), &[&train[..], &["--set", "network.folds=3", "--threads", "1"]].concat(), &[]);
    for command in ["evaluate", "calibrate"] {
        let on = [command, "run", "--on", "later.csv"];
        let without = ["later.csv: there are no labelled vectors\n", "--labels FILE", "--label-column NAME"];
        ends(temp.path(), &on, 2, &without);
        let labelled = [&on[..], &["--label-column", "section", "--threads", "1"]].concat();
        succeeds(temp.path(), &labelled, &["30 vectors"]);
        let images = [&labelled[..], &["--layout", "classes"]].concat();
        ends(
            temp.path(),
            &images,
            2,
            &["--layout is for runs on images, but this run was trained on vectors"],
        );
    }
}

#[test]
fn changed_model_file_is_named() {
    let temp = trained();
    let path = temp.path().join("run/model.json");
    let mut info: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    info["calibration"]["samples"] = 61.into();
    fs::write(&path, serde_json::to_vec_pretty(&info).unwrap()).unwrap();
    let changed = ["run/model.json: the calibration has changed since it was written", "restore model.json"];
    let on = ["--on", "later.npy", "--labels", "later.csv"];
    for arguments in
        [&[&["calibrate", "run"], &on[..]].concat()[..], &[&["evaluate", "run"], &on[..]].concat()]
    {
        ends(temp.path(), arguments, 1, &changed);
    }
    ends(temp.path(), &["predict", "run", "later.npy"], 1, &changed);
    ends(temp.path(), &["export", "run", "--to", "exported"], 1, &changed);
}

#[test]
fn run_on_vectors_is_evaluated_again() {
    let temp = tempfile::tempdir().unwrap();
    write_npy(&temp.path().join("vectors.npy"), 0..300, false);
    let split = |row| if row < 60 { "train" } else { "test" };
    let labels: Vec<String> = (0..120).map(|row| format!("{row},{},{}", class(row), split(row))).collect();
    fs::write(temp.path().join("labels.csv"), format!("id,label,split\n{}\n", labels.join("\n"))).unwrap();
    train(temp.path());
    let evaluate = ["evaluate", "run", "--threads", "1"];
    let printed = succeeds(
        temp.path(),
        &evaluate,
        &["evaluating run …", "\nmodel\n", "test, 60 vectors", "an ECE needs at least 1,000 vectors"],
    );
    assert!(!printed.contains("image") && !printed.contains("step"), "{printed}");

    // The metrics are those that the run wrote.
    let printed = succeeds(temp.path(), &["evaluate", "run", "--json"], &[]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let result: Value =
        serde_json::from_slice(&fs::read(temp.path().join("run/result.json")).unwrap()).unwrap();
    let evaluations = printed["evaluations"].as_array().unwrap();
    let written = result["evaluations"].as_array().unwrap();
    assert!(!written.is_empty());
    for seen in written {
        let again = evaluations.iter().find(|again| again["split"] == seen["split"]).unwrap();
        assert_eq!(again["metrics"], seen["metrics"]);
        assert_eq!(again["calibrated"]["metrics"], seen["calibrated"]["metrics"]);
    }

    fs::rename(temp.path().join("vectors.npy"), temp.path().join("moved.npy")).unwrap();
    let moved =
        ["the vectors of this run have moved or were deleted", "calmix evaluate run --data NEW_PLACE"];
    ends(temp.path(), &evaluate, 2, &moved);
    let here = temp.path().join("moved");
    fs::create_dir(&here).unwrap();
    fs::rename(temp.path().join("moved.npy"), here.join("vectors.npy")).unwrap();
    succeeds(temp.path(), &["evaluate", "run", "--data", "moved/vectors.npy"], &["test, 60 vectors"]);
    ends(temp.path(), &["evaluate", "run", "--device", "cuda"], 2, &["runs on the CPU"]);
    fs::remove_file(temp.path().join("run/result.json")).unwrap();
    ends(temp.path(), &["evaluate", "run", "--data", "moved/vectors.npy"], 2, &["has not finished"]);
}

#[test]
fn model_of_vectors_is_evaluated_on_others() {
    let temp = trained();
    succeeds(temp.path(), &["evaluate", "run"], &["out-of-fold, 60 labels", "next: "]);
    let on = ["evaluate", "run", "--on", "later.npy", "--labels", "later.csv"];
    let printed = succeeds(
        temp.path(),
        &on,
        &["on later.npy\n", "test, 90 vectors", "90% prediction sets: ", "90% precision: "],
    );
    assert!(!printed.contains("image") && !printed.contains("step"), "{printed}");
    let votes = (300..390).map(|row| ["9,1,0\n", "0,8,2\n", "0,0,10\n"][row % 3]).collect::<String>();
    fs::write(temp.path().join("votes.csv"), "ant,bee,cow\n".to_owned() + &votes).unwrap();
    let printed = succeeds(temp.path(), &[&on[..], &["--votes", "votes.csv", "--json"]].concat(), &[]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["evaluation"]["samples"], 90);
    assert_eq!(printed["votes"]["samples"], 90);
    // As many rows, but those after the empty line would count for other samples.
    fs::write(temp.path().join("votes.csv"), format!("ant,bee,cow\n{}", votes.replacen('\n', "\n\n", 1)))
        .unwrap();
    let refused = [&on[..], &["--votes", "votes.csv"]].concat();
    ends(temp.path(), &refused, 2, &["row 2: the line before it is empty", "write a line of zeros"]);
    assert!(printed["sets"]["coverage"].is_number(), "{printed}");
    let error = printed["evaluation"]["metrics"]["error"].as_f64().unwrap();
    assert!(error < 0.2, "the classes are easy to tell apart: {error}");

    succeeds(temp.path(), &CALIBRATE, &[]);
    succeeds(temp.path(), &on, &["warning: the model was calibrated on these vectors, so"]);
    succeeds(temp.path(), &["evaluate", "run"], &["fitted on 90 new labels"]);
    ends(temp.path(), &["evaluate", "run", "--labels", "later.csv"], 2, &["--on"]);
    ends(temp.path(), &["evaluate", "run", "--on", "later.npy"], 2, &["later.npy: "]);
}

#[test]
fn groups_of_new_labels_are_taken() {
    let temp = trained();
    let mut list = "id,label,group\n".to_owned();
    for row in 0..90 {
        list.extend([row.to_string().as_str(), ",", class(300 + row), ",", &(row / 3).to_string(), "\n"]);
    }
    fs::write(temp.path().join("later.csv"), list).unwrap();
    succeeds(temp.path(), &CALIBRATE, &[]);
    let info = fs::read(temp.path().join("run/model.json")).unwrap();
    let info: Value = serde_json::from_slice(&info).unwrap();
    let groups = info["held_out"]["group"].as_array().unwrap();
    let different: std::collections::BTreeSet<u64> = groups.iter().filter_map(Value::as_u64).collect();
    assert_eq!((groups.len(), different.len()), (90, 30));
    succeeds(temp.path(), &["evaluate", "run", "--on", "later.npy", "--labels", "later.csv"], &[]);
}
