//! `calmix sweep` of runs on vectors, as a user runs it: without libtorch.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::planted::{calmix, text, write_labels, write_npy};

const SWEEP: [&str; 6] = ["sweep", "grid.toml", "--data", "vectors.npy", "--sweep-dir", "swept"];

/// Writes 120 vectors, the labels of the first 30, and a sweep of two settings and two seeds.
fn made(folder: &Path) {
    write_npy(&folder.join("vectors.npy"), 0..120, false);
    write_labels(&folder.join("labels.csv"), 0, 30);
    let grid = "[all]\nnetwork.folds = 3\nevaluate.bootstrap = 0\n\n[[grid]]\nrecipe = \"vectors\"\nseeds = [1, 2]\n\
                dataset.labels = \"labels.csv\"\nnetwork.dimensions = [4, 8]\n";
    fs::write(folder.join("grid.toml"), grid).unwrap();
}

fn summaries(folder: &Path) -> [Vec<u8>; 2] {
    ["summary.json", "summary.csv"].map(|name| fs::read(folder.join("swept").join(name)).unwrap())
}

#[test]
fn sweep_of_vectors_trains_without_libtorch() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    let output = calmix(temp.path(), &[&SWEEP[..], &["--dry-run"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("\n4 runs; every recipe is valid"), "{}", text(&output));
    let output = calmix(temp.path(), &SWEEP);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    for expected in ["run 1 of 4: vectors-", "4 of 4 runs finished", "next: calmix compare swept/runs"] {
        assert!(text(&output).contains(expected), "{expected}: {}", text(&output));
    }
    let first = summaries(temp.path());
    let summary: Value = serde_json::from_slice(&first[0]).unwrap();
    let runs = summary["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for run in runs {
        assert_eq!(run["state"], "finished", "{run}");
        assert_eq!(run["result"]["is_kept"], true, "{run}");
        assert_eq!(run["labels_alone"]["head"], "logistic-regression", "{run}");
    }

    // As a kill leaves a run: the sweep finishes it, to the same bytes.
    let killed = temp.path().join("swept/runs").join(runs[2]["name"].as_str().unwrap());
    fs::remove_file(killed.join("result.json")).unwrap();
    let output = calmix(temp.path(), &SWEEP);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(text(&output).matches("\nfinished vectors-").count(), 1, "{}", text(&output));
    assert!(summaries(temp.path()) == first);

    // Another number of dimensions for the same name.
    let output = calmix(temp.path(), &[&SWEEP[..], &["--set", "network.folds=4"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("the sweep has changed since this run began"), "{}", text(&output));

    let compared = text(&calmix(temp.path(), &["compare", "swept"]));
    assert!(compared.contains("logistic regression"), "{compared}");
}

#[test]
fn damaged_runs_fail_alone() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    let [recipe, failed] = ["runs/vectors-4-seed-1/recipe.toml", "failed/vectors-8-seed-2.json"]
        .map(|name| temp.path().join("swept").join(name));
    for damaged in [&recipe, &failed] {
        fs::create_dir_all(damaged.parent().unwrap()).unwrap();
        fs::write(damaged, "[").unwrap();
    }
    let output = calmix(temp.path(), &SWEEP);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let text = text(&output);
    for expected in
        ["2 of 4 runs finished", "failed: vectors-4-seed-1: ", "failed: vectors-8-seed-2: ", "recipe.toml"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

/// What keeps a run that ends its process from being tried for ever.
#[test]
fn killed_worker_leaves_its_attempt_recorded() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    write_npy(&temp.path().join("vectors.npy"), 0..20_000, false);
    calmix(temp.path(), &["--version"]);
    let attempts = temp.path().join("swept/attempts");
    // Not the scratch file that becomes the record: it may still be empty.
    let is_record = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let record = || {
        let found = fs::read_dir(&attempts).ok()?.flatten().map(|entry| entry.path()).find(is_record)?;
        fs::read(found).ok()
    };
    let mut worker = Command::new(temp.path().join("bin/calmix"));
    worker.args(SWEEP).current_dir(temp.path()).stdout(Stdio::null()).stderr(Stdio::null());
    // The kill may come between two runs.
    let left = (0..20).find_map(|_| {
        let mut worker = worker.spawn().unwrap();
        while record().is_none() && worker.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        worker.kill().unwrap();
        worker.wait().unwrap();
        record()
    });
    let left: Value = serde_json::from_slice(&left.expect("no attempt was recorded")).unwrap();
    assert_eq!(left["attempts"], 1, "{left}");
}

/// The grid has two dimensions; whichever option sets one of them, two runs would be the same.
#[test]
fn option_for_a_key_that_varies_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    let output = calmix(temp.path(), &[&SWEEP[..], &["--set", "network.dimensions=6", "--dry-run"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    for expected in [
        "grid.toml: the sweep has several values of network.dimensions, and --set network.dimensions sets one for all runs: ",
        "vectors-4-seed-1 and vectors-8-seed-1 would be the same\n",
        "try: leave --set network.dimensions out, or give network.dimensions one value in the sweep file",
    ] {
        assert!(text(&output).contains(expected), "{}", text(&output));
    }
    // A key that all runs have with one value may be set, and so may one in which other keys differ, too.
    for setting in ["network.folds=4", "train.seed=3"] {
        let output = calmix(temp.path(), &[&SWEEP[..], &["--set", setting, "--dry-run"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    }
    let paths = "[[grid]]\nrecipe = \"vectors\"\ndataset.path = [\"vectors.npy\", \"other.npy\"]\n";
    fs::write(temp.path().join("grid.toml"), paths).unwrap();
    let output = calmix(temp.path(), &[&SWEEP[..], &["--dry-run"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(
        text(&output).contains("several values of dataset.path, and --data sets one"),
        "{}",
        text(&output)
    );
}

#[test]
fn sweep_without_grid_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("grid.toml"), "recipe = \"vectors\"\nseeds = [1, 2]\n").unwrap();
    for (arguments, expected) in [
        (&SWEEP[..], "grid.toml: there is no grid; write [[grid]], then recipe = "),
        (&["sweep", "missing.toml"], "missing.toml: No such file"),
    ] {
        let output = calmix(temp.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains(expected), "{}", text(&output));
        assert!(!text(&output).contains("calmix-torch"), "{}", text(&output));
    }
}

#[test]
fn sweep_without_vectors_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    let output = calmix(temp.path(), &["sweep", "grid.toml"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("no vectors given"), "{}", text(&output));
}
