//! A head on frozen features, from weights at hand to predictions.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use calmix::run::evaluate::Predictions;
use serde_json::Value;

use crate::fixture::Fixture;
use crate::workspace::{CommandOutput, Workspace};

fn train(workspace: &Workspace, run: &str, more: &[&str]) -> CommandOutput {
    workspace.end(workspace.head_training(&[&["--run-dir", run], more].concat()))
}

#[test]
fn a_head_is_trained_used_and_needs_nothing_but_its_folder() {
    let workspace = Fixture::Weights.copy();
    let trained = train(&workspace, "run", &[]).with_code(0);
    trained.reports(&["a linear head on features of wrn-10-1, which is frozen"]);
    trained.prints(&["two heads, same labels", "labels alone", "each by a head trained without it"]);
    assert!(workspace.path("features").is_dir());
    // Neither the weights nor the features are needed from now on.
    fs::remove_dir_all(workspace.path("weights")).unwrap();
    fs::remove_dir_all(workspace.path("features")).unwrap();
    let said = fs::read(workspace.path("run/predictions/step-000000004-test-ema.safetensors")).unwrap();
    let said = Predictions::from_bytes(&said).unwrap();
    let info: Value = serde_json::from_slice(&fs::read(workspace.path("run/model.json")).unwrap()).unwrap();
    let temperature = info["calibration"]["map"]["temperature"].as_f64().unwrap();
    let map = calmix::core::calibration::temperature::Temperature::new(temperature).unwrap();
    let probabilities = map.probabilities(said.matrix().unwrap());
    for batch in ["64", "3"] {
        let arguments = [
            "predict",
            "run",
            "own/test",
            "--threads",
            "1",
            "--format",
            "jsonl",
            "--probabilities",
            "--batch",
            batch,
        ];
        let predicted = workspace.run(&arguments).with_code(0);
        let rows: Vec<Value> =
            predicted.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows.len(), said.ids.len());
        for (row, expected) in rows.iter().zip(probabilities.chunks_exact(2)) {
            let found = row["probabilities"].as_array().unwrap().iter();
            let found: Vec<u32> = found.map(|p| (p.as_f64().unwrap() as f32).to_bits()).collect();
            assert_eq!(found, expected.iter().map(|p| p.to_bits()).collect::<Vec<_>>(), "{row}");
        }
    }
    workspace.run(&["evaluate", "run"]).with_code(0).prints(&["test, 8 images"]);
    workspace.run(&["evaluate", "run", "--on", "own", "--subset", "val"]).with_code(0);
    workspace.run(&["inspect", "run"]).with_code(0);
    workspace.run(&["resume", "run"]).with_code(0).prints(&["already finished"]);
    workspace.run(&["calibrate", "run", "--on", "own", "--subset", "val"]).with_code(0);
    // What is below the head is checked by its hash.
    for file in ["run/backbone.safetensors", "run/projection.safetensors"] {
        let path = workspace.path(file);
        let bytes = fs::read(&path).unwrap();
        let mut changed = bytes.clone();
        *changed.last_mut().unwrap() ^= 1;
        fs::remove_file(&path).unwrap();
        fs::write(&path, changed).unwrap();
        let refused = workspace.run(&["predict", "run", "own/test"]).with_code(1);
        refused.reports(&[file, "not the file that the head was trained on"]);
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn a_folder_gets_a_head_where_weights_are_at_hand() {
    let workspace = Fixture::Weights.copy();
    let train = |run: &str| {
        let mut command = workspace.command(&["train", "--data", "own", "--threads", "1", "--run-dir", run]);
        for setting in ["train.steps=2", "train.batch=4", "train.ratio=1", "evaluate.bootstrap=0"] {
            command.args(["--set", setting]);
        }
        workspace.end(command).with_code(0)
    };
    let trained = train("run");
    trained.reports(&[
        "recipe head-folder, since pretrained weights are at hand",
        "weights tiny at 224 pixels: the largest at hand",
    ]);
    trained.reports(&["features of ", " views at some ", "once for this folder"]);
    trained.reports(&["images of 224 pixels: rate of the weights at hand\n"]);
    // The second run measures nothing, and makes no features.
    let made = workspace.names("features");
    let choice = made.iter().find(|name| name.ends_with(".choice.json")).unwrap();
    let path = workspace.path("features").join(choice);
    let slower = fs::read_to_string(&path).unwrap().replace("\"size\": 224", "\"size\": 160");
    fs::write(&path, slower).unwrap();
    train("again").reports(&["weights tiny at 160 pixels"]);
    fs::write(&path, "{").unwrap();
    train("third").reports(&["weights tiny at 224 pixels"]);
}

#[test]
fn features_are_made_without_a_run_and_a_head_wants_one_process() {
    let workspace = Fixture::Weights.copy();
    train(&workspace, "x", &["--features-only"])
        .with_code(2)
        .reports(&["not prepared yet", "try: calmix prepare "]);
    workspace.run(&["prepare", "own"]).with_code(0);
    for shard in ["1/2", "2/2"] {
        train(&workspace, "x", &["--features-only", "--shard", shard])
            .with_code(0)
            .reports(&["the features are in features"]);
    }
    assert!(!workspace.path("x").exists());
    let made = workspace.names("features");
    train(&workspace, "run", &["--prepared", "prepared/own"]).with_code(0);
    assert_eq!(workspace.names("features"), made);
    train(&workspace, "two", &["--processes", "2"])
        .with_code(2)
        .reports(&["a head is trained in one process"]);
}

/// The names and bytes of the pages of features in a cache.
fn pages(workspace: &Workspace, cache: &str) -> BTreeMap<String, Vec<u8>> {
    let folders = workspace.names(cache).into_iter().map(|folder| format!("{cache}/{folder}"));
    let files = folders.flat_map(|folder| {
        let names = workspace.names(&folder).into_iter().filter(|name| name.starts_with("page-"));
        names.map(|name| workspace.path(&folder).join(name)).collect::<Vec<_>>()
    });
    let read = |path: std::path::PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap())
    };
    files.map(read).collect()
}

/// A folder of 1,200 pictures, prepared, and what makes 16,800 views of it: a second or two of work.
fn with_many_pictures() -> Workspace {
    let workspace = Fixture::Weights.copy();
    for (class, shade) in [("cat", 40), ("dog", 200)] {
        workspace.pictures(&format!("many/{class}"), shade, 600);
    }
    workspace.run(&["prepare", "many"]).with_code(0);
    workspace
}

fn making(workspace: &Workspace, cache: &str, more: &[&str]) -> std::process::Command {
    let settings = [
        "network.weights=tiny",
        "network.dimensions=8",
        "network.weak_views=6",
        "network.strong_views=7",
        "augment.size=16",
        "train.steps=3",
        "train.batch=4",
        "train.ratio=1",
        "evaluate.bootstrap=0",
        &format!("network.cache={cache}"),
    ];
    let mut command = workspace.command(&["train", "head-folder", "--data", "many", "--threads", "1"]);
    command.args(settings.iter().flat_map(|setting| ["--set", setting])).args(more);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Makers that are killed by SIGKILL at any moment, several at once: what they leave is whole, and in the end the cache has
/// the bytes of one that was made in peace.
#[test]
fn killed_makers_leave_a_cache_that_ends_the_same() {
    let workspace = with_many_pictures();
    assert!(making(&workspace, "whole", &["--features-only"]).status().unwrap().success());
    let wanted = pages(&workspace, "whole");
    assert_eq!(wanted.len(), 5);
    let mut kills = 0;
    for round in 0..8 {
        let start = |shard: &str| {
            making(&workspace, "killed", &["--features-only", "--shard", shard]).spawn().unwrap()
        };
        let makers = ["1/4", "2/4", "3/4", "4/4"].map(start);
        std::thread::sleep(Duration::from_millis(300 + 170 * (round % 5)));
        for mut maker in makers {
            maker.kill().unwrap();
            kills += u32::from(!maker.wait().unwrap().success());
        }
        if workspace.path("killed").exists() {
            let made = pages(&workspace, "killed");
            assert!(made.iter().all(|(name, bytes)| wanted.get(name) == Some(bytes)), "round {round}");
        }
    }
    assert!(kills > 0, "nothing was killed");
    for shard in ["1/2", "2/2"] {
        assert!(
            making(&workspace, "killed", &["--features-only", "--shard", shard]).status().unwrap().success()
        );
    }
    assert!(pages(&workspace, "killed") == wanted);
}

#[test]
fn two_runs_fill_one_cache_at_once() {
    let workspace = with_many_pictures();
    let run =
        |cache: &str, run: &str, seed: &str| making(&workspace, cache, &["--run-dir", run, "--seed", seed]);
    let mut both = [("a", "1"), ("b", "2")].map(|(name, seed)| run("shared", name, seed).spawn().unwrap());
    assert!(both.iter_mut().all(|child| child.wait().unwrap().success()));
    for (name, seed) in [("a", "1"), ("b", "2")] {
        let alone = format!("{name}-alone");
        assert!(run(&alone, &format!("{alone}-run"), seed).status().unwrap().success());
        for file in ["result.json", "model.safetensors"] {
            let read = |run: &str| fs::read(workspace.path(run).join(file)).unwrap();
            assert!(read(name) == read(&format!("{alone}-run")), "{file} of {name}");
        }
        assert!(pages(&workspace, &alone) == pages(&workspace, "shared"), "{name}");
    }
}
