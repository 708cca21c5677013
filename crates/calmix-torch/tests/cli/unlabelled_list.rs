//! `calmix train --unlabelled LIST`: the unlabelled samples are those of a list.

use std::fs;
use std::path::Path;
use std::process::Command;

use calmix_testkit::dataset_files::shard;
use calmix_testkit::workspace::running::Running;
use calmix_testkit::workspace::{CommandOutput, TINY, Workspace};
use serde_json::Value;

use super::fixture::Fixture;
use super::head;
use super::predict::predict;
use crate::program::new_workspace;

/// A CSV list of these paths.
fn csv(workspace: &Workspace, name: &str, paths: &[String]) {
    fs::write(workspace.path(name), format!("path\n{}\n", paths.join("\n"))).unwrap();
}

/// Trains on a folder, with four labels per class, four steps and a list.
fn training(workspace: &Workspace, data: &str, run: &str, more: &[&str]) -> Command {
    let mut command =
        workspace.command(&["train", "cpu-folder", "--data", data, "--threads", "1", "--run-dir", run]);
    let own = ["train.steps=4", "network.name=wrn-10-1", "labels.keep=per-class", "checkpoint.every=2"];
    for setting in TINY.iter().chain(&own) {
        command.args(["--set", setting]);
    }
    command.args(more);
    command
}

fn train(workspace: &Workspace, data: &str, run: &str, more: &[&str]) -> CommandOutput {
    workspace.end(training(workspace, data, run, more))
}

/// The unlabelled samples in the split of a run.
fn pool(workspace: &Workspace, run: &str) -> Vec<u64> {
    let split: Value =
        serde_json::from_slice(&fs::read(workspace.path(run).join("split.json")).unwrap()).unwrap();
    let mut ids: Vec<u64> = Vec::new();
    for difference in split["unlabelled"].as_array().unwrap() {
        ids.push(ids.last().unwrap_or(&0) + difference.as_u64().unwrap());
    }
    ids
}

/// Fails unless two runs have the same bytes in all files that do not name paths.
#[track_caller]
fn same(workspace: &Workspace, a: &str, b: &str) {
    for file in ["events.jsonl", "model.safetensors", "split.json"] {
        let read = |run: &str| fs::read(workspace.path(run).join(file)).unwrap();
        assert!(read(a) == read(b), "{file} of {a} and {b} differ");
    }
}

/// Two classes of ten and twelve without a label, as shards; members of one shard begin with `./`.
fn with_shards(workspace: &Workspace) {
    fs::create_dir(workspace.path("shards")).unwrap();
    for (tar, folder, class, prefix) in [
        ("train-0", "cat", Some("0"), ""),
        ("train-1", "dog", Some("1"), "./"),
        ("unlabelled-0", "unlabelled", None, "deep/"),
    ] {
        let count = if class.is_some() { 10 } else { 12 };
        let mut members: Vec<(String, Vec<u8>)> = Vec::new();
        for n in 0..count {
            let image = fs::read(workspace.path(&format!("photos/{folder}/{n}.png"))).unwrap();
            members.push((format!("{prefix}{n}.png"), image));
            members.extend(class.map(|class| (format!("{prefix}{n}.cls"), class.into())));
        }
        let members: Vec<(&str, &[u8])> =
            members.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        shard(&workspace.path(&format!("shards/{tar}.tar")), &members);
    }
}

#[test]
fn list_trains_as_a_folder_of_those_images() {
    let workspace = new_workspace().with_photos();
    // The first in the order of names, so that ids are those of a folder without the others.
    let kept = ["0", "1", "10", "11", "2"];
    fs::create_dir_all(workspace.path("few/unlabelled")).unwrap();
    for class in ["cat", "dog"] {
        fs::create_dir(workspace.path(&format!("few/{class}"))).unwrap();
        for n in 0..10 {
            let name = format!("{class}/{n}.png");
            fs::copy(workspace.path("photos").join(&name), workspace.path("few").join(&name)).unwrap();
        }
    }
    for n in kept {
        let name = format!("unlabelled/{n}.png");
        fs::copy(workspace.path("photos").join(&name), workspace.path("few").join(&name)).unwrap();
    }
    fs::remove_file(workspace.path("photos/cat/broken.png")).unwrap();
    let photos = workspace.path("photos");
    // From the dataset's folder, from the current one, from the root, twice, and a labelled one of the folder `cat`.
    let paths = [
        "unlabelled/0.png".to_owned(),
        "photos/unlabelled/1.png".to_owned(),
        photos.join("unlabelled/10.png").display().to_string(),
        "./photos//unlabelled/../unlabelled/11.png".to_owned(),
        "unlabelled/2.png".to_owned(),
        "photos/unlabelled/0.png".to_owned(),
    ];
    let labelled = (0..10).map(|n| format!("cat/{n}.png"));
    let all: Vec<String> =
        paths.into_iter().chain(labelled).chain((0..10).map(|n| format!("dog/{n}.png"))).collect();
    csv(&workspace, "list.csv", &all);
    let listed = train(&workspace, "photos", "listed", &["--unlabelled", "list.csv"]).with_code(0);
    listed.reports(&["4 labelled, 25 unlabelled (listed in [HERE]/list.csv)"]);
    train(&workspace, "few", "physical", &[]).with_code(0).reports(&["4 labelled, 25 unlabelled,"]);
    for file in ["model.safetensors", "margins.json"] {
        let read = |run: &str| fs::read(workspace.path(run).join(file)).unwrap();
        assert!(read("listed") == read("physical"), "{file} differs");
    }
    // Without the list, other samples are drawn.
    train(&workspace, "photos", "whole", &[]).with_code(0).reports(&["4 labelled, 32 unlabelled,"]);
    let read = |run: &str| fs::read(workspace.path(run).join("model.safetensors")).unwrap();
    assert!(read("listed") != read("whole"));
}

#[test]
fn listed_labels_stay_as_they_are_drawn() {
    let workspace = new_workspace().with_photos();
    let paths: Vec<String> = [3, 7, 5].iter().map(|n| format!("unlabelled/{n}.png")).collect();
    csv(&workspace, "list.csv", &paths);
    train(&workspace, "photos", "whole", &[]).with_code(0);
    let alone = ["--unlabelled", "list.csv", "--set", "labels.include_labelled=false"];
    train(&workspace, "photos", "listed", &alone).with_code(0);
    assert_eq!(pool(&workspace, "listed").len(), 3);
    let labels = |run: &str| -> Value {
        let split = fs::read(workspace.path(run).join("split.json")).unwrap();
        serde_json::from_slice::<Value>(&split).unwrap()["labelled"].clone()
    };
    assert_eq!(labels("listed"), labels("whole"));
    // Included labels are in the pool, listed or not.
    train(&workspace, "photos", "both", &["--unlabelled", "list.csv"]).with_code(0);
    let labels: Vec<u64> =
        labels("whole").as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
    let mut expected = [labels, pool(&workspace, "listed")].concat();
    expected.sort_unstable();
    assert_eq!(pool(&workspace, "both"), expected);
    workspace.run(&["report", "both"]).with_code(0);
}

#[test]
fn predicted_parquet_of_tars_is_a_list() {
    let workspace = Fixture::Photos.copy();
    with_shards(&workspace);
    predict(
        &workspace,
        &["shards/unlabelled-0.tar", "shards/train-1.tar", "--part-rows", "5", "--out", "all.parquet"],
    )
    .with_code(0);
    let trained = train(&workspace, "shards", "tars", &["--unlabelled", "all.parquet"]).with_code(0);
    trained.reports(&["4 labelled, 24 unlabelled (listed in [HERE]/all.parquet)"]);
    // From another folder the same list names its images by their whole paths.
    let shards = workspace.path("shards").display().to_string();
    let mut from_shards =
        workspace.command(&["predict", "../run", &format!("{shards}/unlabelled-0.tar"), "--out", "u.csv"]);
    from_shards.current_dir(workspace.path("photos"));
    workspace.end(from_shards).with_code(0);
    let more = ["--unlabelled", "photos/u.csv", "--set", "labels.include_labelled=false"];
    train(&workspace, "shards", "csv", &more).with_code(0);
    assert_eq!(pool(&workspace, "csv"), (20..32).collect::<Vec<_>>());
    let mut relative = Vec::new();
    for n in [4, 9] {
        relative.push(format!("unlabelled-0.tar/deep/{n}.png"));
        relative.push(format!("shards/train-1.tar/{n}.png"));
    }
    csv(&workspace, "some.csv", &relative);
    train(
        &workspace,
        "shards",
        "some",
        &["--unlabelled", "some.csv", "--set", "labels.include_labelled=false"],
    )
    .with_code(0);
    let some = pool(&workspace, "some");
    assert!(some.len() >= 2 && some.ends_with(&[24, 29]), "{some:?}");
    let unknown = ["shards/train-1.tar/99.png".to_owned()];
    csv(&workspace, "unknown.csv", &unknown);
    train(&workspace, "shards", "none", &["--unlabelled", "unknown.csv"]).with_code(2).reports(&[
        "unknown.csv, line 2",
        "99.png\" is not a sample",
        "such as train-0.tar/0.png",
    ]);
}

#[test]
fn list_is_not_needed_after_the_start() {
    let workspace = new_workspace().with_photos();
    let paths: Vec<String> = (0..9).map(|n| format!("unlabelled/{n}.png")).collect();
    csv(&workspace, "list.csv", &paths);
    let shards = ["--unlabelled", "list.csv", "--set", "train.shards=2", "--set", "train.steps=40"];
    train(&workspace, "photos", "whole", &shards).with_code(0);
    train(&workspace, "photos", "two", &[&shards[..], &["--processes", "2"]].concat()).with_code(0);
    same(&workspace, "whole", "two");
    let mut running = Running::new(training(&workspace, "photos", "run", &shards));
    running.until("step 10/40");
    running.signal("KILL");
    running.end();
    fs::remove_file(workspace.path("list.csv")).unwrap();
    csv(&workspace, "other.csv", &paths[..4]);
    let other = format!("labels.unlabelled_file={}", workspace.path("other.csv").display());
    workspace
        .run(&["resume", "run", "--set", &other])
        .with_code(2)
        .reports(&["labels.unlabelled_file", "a resumed run cannot change these keys"]);
    // A pool that was changed is refused.
    let path = workspace.path("run/split.json");
    let split = fs::read_to_string(&path).unwrap();
    let (before, after) = split.rsplit_once("\"unlabelled\":[").unwrap();
    let (first, others) = after.split_once(',').unwrap();
    let (second, others) = others.split_once(',').unwrap();
    let both = first.parse::<u64>().unwrap() + second.parse::<u64>().unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, format!("{before}\"unlabelled\":[{both},{others}")).unwrap();
    workspace
        .run(&["resume", "run"])
        .with_code(2)
        .reports(&["run/split.json: this is not the split that the run started with"]);
    fs::write(&path, &split).unwrap();
    workspace.run(&["resume", "run", "--processes", "2"]).with_code(0);
    same(&workspace, "whole", "run");
}

#[test]
fn launched_again_with_other_list_is_refused() {
    let workspace = new_workspace().with_photos();
    let paths: Vec<String> = (0..9).map(|n| format!("unlabelled/{n}.png")).collect();
    csv(&workspace, "list.csv", &paths);
    let launched = || {
        let mut command = training(&workspace, "photos", "run", &["--unlabelled", "list.csv"]);
        command.envs([
            ("RANK", "0"),
            ("WORLD_SIZE", "1"),
            ("MASTER_ADDR", "127.0.0.1"),
            ("MASTER_PORT", "0"),
        ]);
        workspace.end(command)
    };
    launched().with_code(0);
    launched().with_code(0).prints(&["already finished"]);
    csv(&workspace, "list.csv", &paths[..4]);
    launched().with_code(2).reports(&[
        "list.csv",
        "other samples than when the run run started",
        "--run-dir",
    ]);
}

#[test]
fn head_uses_listed_images() {
    let workspace = Fixture::Weights.copy();
    workspace.images("own/unlabelled", 120, 12);
    let paths: Vec<String> = [1, 4, 6].iter().map(|n| format!("own/unlabelled/{n}.png")).collect();
    csv(&workspace, "list.csv", &paths);
    head::train(&workspace, "whole", &[]).with_code(0).reports(&["22 unlabelled,"]);
    let listed = ["--unlabelled", "list.csv"];
    head::train(&workspace, "listed", &listed).with_code(0).reports(&["13 unlabelled (listed in"]);
    head::train(&workspace, "again", &listed).with_code(0);
    for file in ["model.safetensors", "split.json"] {
        let read = |run: &str| fs::read(workspace.path(run).join(file)).unwrap();
        assert!(read("listed") == read("again"), "{file}");
        assert!(read("listed") != read("whole"), "{file}");
    }
    fs::remove_file(workspace.path("list.csv")).unwrap();
    workspace.run(&["evaluate", "listed"]).with_code(0);
    workspace.run(&["predict", "listed", "own/test"]).with_code(0);
    // The list wins over the recipe's limit, and the user over both.
    let recipe = fs::read_to_string(workspace.path("listed/recipe.toml")).unwrap();
    assert!(recipe.contains("unlabelled_count = 0\n"), "{recipe}");
}

#[test]
fn hostile_lists_are_refused() {
    let workspace = Fixture::Photos.copy().with_validation_folder();
    fs::create_dir(workspace.path("folder")).unwrap();
    fs::write(workspace.path("empty.csv"), "").unwrap();
    fs::write(workspace.path("header.csv"), "path\n").unwrap();
    fs::write(workspace.path("column.csv"), "file,label\nunlabelled/0.png,cat\n").unwrap();
    fs::write(workspace.path("semicolons.csv"), "path;label\nunlabelled/0.png;cat\n").unwrap();
    fs::write(workspace.path("gap.csv"), "path,label\nunlabelled/0.png,cat\n,dog\n").unwrap();
    fs::write(workspace.path("bytes.csv"), b"path\n\xff\xfe\n").unwrap();
    fs::write(workspace.path("list.txt"), "unlabelled/0.png\n").unwrap();
    fs::write(workspace.path("damaged.parquet"), b"PAR1 not really PAR1").unwrap();
    csv(&workspace, "unknown.csv", &["unlabelled/0.png".into(), "unlabelled/99.png".into()]);
    csv(&workspace, "outside.csv", &["/etc/passwd".into()]);
    csv(&workspace, "above.csv", &["../../../../../../../../etc/passwd".into()]);
    csv(&workspace, "left-out.csv", &["cat/broken.png".into()]);
    csv(&workspace, "url.csv", &["s3://bucket/unlabelled/0.png".into()]);
    predict(&workspace, &["photos/unlabelled", "--out", "cut.parquet"]).with_code(0);
    let part = workspace.path("cut.parquet").join(&workspace.names("cut.parquet")[0]);
    let bytes = fs::read(&part).unwrap();
    fs::write(&part, &bytes[..bytes.len() / 2]).unwrap();
    let cases: [(&str, &[&str]); 15] = [
        ("missing.csv", &["missing.csv: does not exist"]),
        ("folder", &["folder: there is no .parquet file in it"]),
        ("empty.csv", &["empty.csv: the list is empty"]),
        ("header.csv", &["header.csv: the list is empty"]),
        ("column.csv", &["column.csv, line 1: no column `path`; the columns are: file, label"]),
        ("semicolons.csv", &["columns are separated by ';'"]),
        ("gap.csv", &["gap.csv, line 3: the row has no path"]),
        ("bytes.csv", &["bytes.csv, line 2: not UTF-8"]),
        ("list.txt", &["list.txt: a list of samples is a .parquet or a .csv"]),
        ("damaged.parquet", &["damaged.parquet: it cannot be read as Parquet"]),
        (
            "unknown.csv",
            &[
                "unknown.csv, line 3: \"unlabelled/99.png\" is not a sample of the dataset [HERE]/photos",
                "such as [HERE]/photos/cat/0.png, or from the dataset's folder, such as cat/0.png",
            ],
        ),
        ("outside.csv", &["outside.csv, line 2: \"/etc/passwd\" is not a sample"]),
        ("above.csv", &["above.csv, line 2: ", "is not a sample"]),
        ("left-out.csv", &["left-out.csv, line 2: \"cat/broken.png\" is not a sample"]),
        ("cut.parquet", &["cut.parquet/", "it cannot be read as Parquet"]),
    ];
    for (list, parts) in cases {
        let refused = train(&workspace, "photos", "none", &["--unlabelled", list]);
        assert!(refused.code != 0 && !refused.stderr.contains("panicked"), "{list}: {}", refused.stderr);
        refused.reports(parts);
        assert!(!workspace.path("none").join("recipe.toml").exists(), "{list}");
    }
    train(&workspace, "photos", "none", &["--unlabelled", "s3://bucket/list.parquet"])
        .with_code(2)
        .reports(&["a list of samples"]);
    // Test images, and a dataset whose samples have no paths.
    csv(&workspace, "test.csv", &["train/cat/0.png".into(), "test/cat/1.png".into()]);
    train(&workspace, "own", "none", &["--unlabelled", "test.csv"])
        .with_code(2)
        .reports(&["test.csv, line 3: the sample is in the subset `test`", "WHERE path NOT LIKE '%/test/%'"]);
    csv(&workspace, "labelled.csv", &["train/cat/0.png".into()]);
    train(&workspace, "own", "none", &["--unlabelled", "labelled.csv", "--set", "labels.keep=all"])
        .with_code(2)
        .reports(&["labelled.csv: none of the 1 listed samples is unlabelled"]);
    let workspace = new_workspace().with_garments();
    csv(&workspace, "list.csv", &["train[3]".into()]);
    workspace
        .end(workspace.training(2, &["--unlabelled", "list.csv", "--run-dir", "none"]))
        .with_code(2)
        .reports(&["its samples have no paths of their own"]);
}

/// A folder in the dataset with the name of the dataset: one path, two images.
#[test]
fn path_with_two_readings_is_refused() {
    let workspace = new_workspace().with_photos();
    workspace.images("photos/unlabelled/photos/unlabelled", 99, 2);
    let inner = workspace.path("photos/unlabelled");
    assert!(inner.join("photos/unlabelled/1.png").exists());
    csv(&workspace, "list.csv", &["photos/unlabelled/1.png".into()]);
    let list = workspace.path("list.csv").display().to_string();
    let data = workspace.path("photos").display().to_string();
    let start = |folder: &Path, run: &str| {
        let mut command = training(&workspace, &data, run, &["--unlabelled", &list]);
        command.current_dir(folder);
        workspace.end(command)
    };
    // Here it is `photos/unlabelled/1.png` only; from within, the file below it too.
    start(workspace.folder(), "run").with_code(0);
    csv(&workspace, "list.csv", &["unlabelled/1.png".into()]);
    workspace.images("photos/unlabelled/unlabelled", 77, 2);
    start(&inner, "again").with_code(2).reports(&[
        "list.csv, line 2: \"unlabelled/1.png\" could be two samples",
        "which begins with [HERE]/photos",
    ]);
}
