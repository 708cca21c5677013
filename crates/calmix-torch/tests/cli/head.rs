//! A head on frozen features, from weights available to predictions.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use calmix_testkit::workspace::folders::{contents, is_same};
use calmix_testkit::workspace::{CommandOutput, LAST_SCREEN, TINY, Workspace};
use calmix_torch::run::read;
use calmix_torch::run::tensor_files::predictions_file;
use serde_json::Value;

use super::fixture::Fixture;

pub(crate) fn train(workspace: &Workspace, run: &str, more: &[&str]) -> CommandOutput {
    workspace.end(workspace.head_training(&[&["--run-dir", run], more].concat()))
}

#[test]
fn head_needs_only_its_run_folder() {
    let workspace = Fixture::Weights.copy();
    let trained = train(&workspace, "run", &[]).with_code(0);
    trained.reports(&["a linear head on a frozen wrn-10-1"]);
    trained.prints(&["test, 8 images", " is the model: its NLL on 12 validation labels is "]);
    assert!(trained.stdout.lines().count() <= LAST_SCREEN, "{}", trained.stdout);
    workspace.run(&["inspect", "run"]).with_code(0).prints(&[
        "two heads, same labels",
        "labels alone",
        "fitted on 12 labels of the validation split",
        "`calmix predict` by default, based on 12 held-out labels:",
    ]);
    assert!(workspace.path("features").is_dir());
    // Neither the weights nor the features are needed from now on.
    fs::remove_dir_all(workspace.path("weights")).unwrap();
    fs::remove_dir_all(workspace.path("features")).unwrap();
    let said = fs::read(workspace.path("run/predictions/step-000000004-test-ema.safetensors")).unwrap();
    let said = predictions_file::from_bytes(&said).unwrap();
    let info: Value = serde_json::from_slice(&fs::read(workspace.path("run/model.json")).unwrap()).unwrap();
    let temperature = info["calibration"]["calibrator"]["temperature"].as_f64().unwrap();
    let map = calmix_torch::metrics::calibrator::temperature::Temperature::new(temperature).unwrap();
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
    workspace.images("later/cat", 41, 6);
    workspace.images("later/dog", 201, 6);
    workspace.run(&["calibrate", "run", "--on", "later"]).with_code(0);
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
fn a_folder_of_labelled_images_alone_is_evaluated_out_of_fold() {
    let workspace = Fixture::Weights.copy();
    for split in ["val", "test"] {
        fs::remove_dir_all(workspace.path("own").join(split)).unwrap();
    }
    let trained = train(&workspace, "runs/run", &[]).with_code(0);
    trained.reports(&["there is no test subset: each label is evaluated by a head trained without it"]);
    let table = ["out-of-fold, 10 labels", "each label is evaluated by a head trained without it"];
    trained.prints(&table[..1]);
    trained.prints(&["(10 labels out of fold)"]);
    let inspected = workspace.run(&["inspect", "runs/run"]).with_code(0);
    inspected.prints(&table);
    inspected.prints(&[
        "out-of-fold NLL",
        "fitted on 10 labels, each predicted by a head trained without it",
        "90% coverage: a prediction set contains ",
    ]);
    workspace.run(&["evaluate", "runs/run"]).with_code(0).prints(&table);
    let listed = workspace.run(&["inspect", "runs", "--json"]).with_code(0);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert!(listed.to_string().contains("\"split\":\"out-of-fold\""), "{listed}");
    workspace.run(&["report", "runs/run"]).with_code(0);
    let page = fs::read_to_string(workspace.path("report.html")).unwrap();
    assert!(page.contains("10 labels, each predicted by a head trained without it"), "{page}");
    // Without folds nothing is known, and the text says what is missing.
    let trained = train(&workspace, "bare", &["--set", "network.folds=0"]).with_code(0);
    trained.prints(&["no metrics: there is no test or val subset, and no label was evaluated out of fold"]);
    workspace.run(&["evaluate", "bare"]).with_code(2).reports(&["nothing to evaluate on"]);
    train(&workspace, "x", &["--set", "network.folds=1"])
        .with_code(2)
        .reports(&["network.folds", "at least 2"]);
}

#[test]
fn folder_with_weights_trains_a_head() {
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
        "recipe head-folder, since you have pretrained weights",
        "weights tiny at 224 pixels, by a fixed rule for 18 views",
    ]);
    trained.reports(&["images of 224 pixels: fixed rule of the number of views\n"]);
    // The second run makes no features.
    let made = workspace.names("features");
    train("again").reports(&["weights tiny at 224 pixels"]);
    assert_eq!(workspace.names("features"), made);
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

/// A folder of 1,200 images, prepared, and what makes 16,800 views of it: a second or two of work.
fn with_many_images() -> Workspace {
    let workspace = Fixture::Weights.copy();
    for (class, shade) in [("cat", 40), ("dog", 200)] {
        workspace.images(&format!("many/{class}"), shade, 600);
    }
    workspace.run(&["prepare", "many"]).with_code(0);
    workspace
}

fn making(workspace: &Workspace, cache: &str, more: &[&str]) -> Command {
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
    let workspace = with_many_images();
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

/// A head is trained anew after a kill, whenever that was: the folder ends with the same bytes.
#[test]
fn killed_head_ends_in_the_same_bytes() {
    let workspace = Fixture::Weights.copy();
    // A run that goes on keeps its features in its own folder.
    let settings = ["--set", "train.steps=600", "--set", "network.cache="];
    let training = |run| workspace.head_training(&[&["--run-dir", run], &settings[..]].concat());
    let start = Instant::now();
    workspace.end(training("whole")).with_code(0);
    let whole_time = start.elapsed();
    let whole = contents(&workspace.path("whole"));
    let mut kills = 0;
    for moment in 1..=20_u32 {
        let mut command = training("killed");
        let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole_time * moment / 21);
        running.kill().unwrap();
        kills += u32::from(!running.wait().unwrap().success());
        if read::has_begun(&workspace.path("killed")) {
            workspace.run(&["resume", "killed"]).with_code(0);
        } else {
            workspace.end(training("killed")).with_code(0);
        }
        is_same(&workspace.path("killed"), &whole, &format!("killed at {moment} of 21"));
        fs::remove_dir_all(workspace.path("killed")).unwrap();
    }
    assert!(kills > 10, "only {kills} were killed before their end");
}

/// SIGTERM between two pages, while images are ready before the backbone needs them: the work ends there, and goes on with
/// what was made.
#[test]
fn stopped_maker_leaves_at_the_next_pass() {
    let workspace = Fixture::Weights.copy();
    for (class, shade) in [("cat", 40), ("dog", 200)] {
        workspace.images(&format!("many/{class}"), shade, 300);
    }
    workspace.run(&["prepare", "many"]).with_code(0);
    let settings = ["--features-only", "--set", "augment.size=32"];
    let mut maker = making(&workspace, "stopped", &settings).spawn().unwrap();
    while !workspace.path("stopped").exists() || pages(&workspace, "stopped").is_empty() {
        assert!(maker.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Instant::now();
    assert!(Command::new("kill").arg(maker.id().to_string()).status().unwrap().success());
    assert_eq!(maker.wait().unwrap().code(), Some(75));
    assert!(sent.elapsed() < Duration::from_secs(5), "after {:?}", sent.elapsed());
    let made = pages(&workspace, "stopped");
    assert!(made.len() < 3, "it made all {} pages", made.len());
    assert!(making(&workspace, "stopped", &settings).status().unwrap().success());
    let all = pages(&workspace, "stopped");
    assert!(all.len() == 3 && made.iter().all(|(name, bytes)| all.get(name) == Some(bytes)));
}

#[test]
fn two_runs_fill_one_cache_at_once() {
    let workspace = with_many_images();
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

/// The table of a method is of its own head, also where the run kept the labels alone; those have lines of their own.
#[test]
fn compare_and_summary_show_both_heads() {
    let workspace = Fixture::Weights.copy();
    let tiny =
        TINY.iter().filter(|setting| !setting.starts_with("labels.") && !setting.starts_with("network."));
    let keys: Vec<String> = tiny.map(|setting| setting.replacen('=', " = ", 1) + "\n").collect();
    let grid = format!(
        "[all]\n{}preset = \"calibrated\"\ntrain.steps = 4\nnetwork.dimensions = 8\nnetwork.weights = \"tiny\"\n[[grid]]\nrecipe = \"head-folder\"\n",
        keys.concat()
    );
    fs::write(workspace.path("grid.toml"), grid).unwrap();
    let sweep = ["sweep", "grid.toml", "--data", "own", "--threads", "1", "--sweep-dir", "sweep"];
    workspace.run(&sweep).with_code(0);
    let summary = fs::read_to_string(workspace.path("sweep/summary.csv")).unwrap();
    let lines: Vec<Vec<&str>> = summary.lines().map(|line| line.split(',').collect()).collect();
    let [names, own, alone] = &lines[..] else { panic!("{summary}") };
    let of = |line: &[&str], name: &str| line[names.iter().position(|at| *at == name).unwrap()].to_owned();
    assert_eq!(["head", "on"].map(|name| of(own, name)), ["recipe", "test"]);
    assert_eq!(["head", "on"].map(|name| of(alone, name)), ["labels-alone", "test"]);
    let kept = [own, alone].map(|line| of(line, "is_kept"));
    assert!(kept == ["true", "false"] || kept == ["false", "true"], "{summary}");

    let path = workspace.path("sweep/runs/head-folder/result.json");
    let mut result: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let metric = |head: &str, calibrated: bool| {
        let candidates = result["heads"]["candidates"].as_array().unwrap();
        let candidate = candidates.iter().find(|candidate| candidate["name"] == head).unwrap();
        let evaluations = candidate["evaluations"].as_array().unwrap();
        let test = evaluations.iter().find(|seen| seen["split"] == "test").unwrap();
        let seen = if calibrated { &test["calibrated"] } else { test };
        seen["metrics"]["nll"].as_f64().unwrap()
    };
    let number = |line: &[&str], name: &str| of(line, name).parse::<f64>().unwrap();
    assert_eq!(number(own, "nll"), metric("recipe", false));
    assert_eq!(number(alone, "nll"), metric("labels-alone", false));
    assert_eq!(number(own, "calibrated_nll"), metric("recipe", true));
    let expected = metric("recipe", false);

    for (n, kept) in [false, true].into_iter().enumerate() {
        result["heads"]["candidates"][n]["kept"] = kept.into();
    }
    fs::write(&path, result.to_string()).unwrap();
    let compared = workspace.run(&["compare", "sweep", "--json"]).with_code(0);
    let compared: Value = serde_json::from_str(&compared.stdout).unwrap();
    let heads: Vec<_> = compared["cells"].as_array().unwrap().iter().map(|cell| &cell["head"]).collect();
    assert_eq!(heads, ["recipe", "labels-alone"]);
    assert_eq!(compared["cells"][0]["measures"]["nll"]["mean"].as_f64(), Some(expected));
    assert!(compared["rows"][1].as_str().unwrap().ends_with(", labels alone"), "{compared}");
    workspace.run(&["compare", "sweep"]).with_code(0).prints(&[
        "| NLL, calibrated ",
        "the metrics are those of the recipe's own head",
        "RandomMixup, labels alone |",
    ]);
}
