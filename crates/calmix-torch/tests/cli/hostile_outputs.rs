//! Folders that commands write into and that another process has prepared: a cache of features, a sweep, a report, and what
//! stands beside predictions. Nothing is written through a link, and no file of the user's is replaced unasked.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use calmix_testkit::tier;
use calmix_testkit::workspace::{TINY, Workspace};

use super::fixture::{Fixture, copy_folder};
use super::hostile_scene::{KINDS, make_outside, outside_of, put};
use super::measured::{Ended, Worst, measured};
use crate::program::new_workspace;

/// Files and folders below a folder, by their names from there; of several pages, only the first.
fn places(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            found.push(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    let mut pages = 0;
    found.retain(|name| !name.contains("/page-") || std::mem::replace(&mut pages, 1) == 0);
    found
}

/// Copies `kept` to `name`, puts something hostile into it, and runs a command on it.
#[track_caller]
fn endured(workspace: &Workspace, name: &str, (place, kind): (&str, &str), command: Command) -> Ended {
    let folder = workspace.path(name);
    let _ = fs::remove_dir_all(&folder);
    copy_folder(&workspace.path("kept"), &folder);
    put(workspace, &folder.join(place), kind);
    let before = outside_of(workspace);
    let ended = measured(command);
    let what = format!("{place}: {kind}");
    assert!(outside_of(workspace) == before, "{what}: touched what is outside\n{}", ended.text);
    assert!(!ended.text.contains("panicked"), "{what}: {}", ended.text);
    ended
}

/// Every place with one kind; with `CALMIX_EXHAUSTIVE=1` with every kind.
fn cases(places: &[String]) -> Vec<(&str, &'static str)> {
    let all = places.iter().enumerate().flat_map(|(n, place)| {
        let kinds = KINDS.iter().enumerate();
        let kinds = kinds.filter(move |(k, _)| tier::is_exhaustive() || n % KINDS.len() == *k);
        kinds.map(move |(_, kind)| (place.as_str(), *kind))
    });
    all.collect()
}

/// A cache is there to save time: whatever stands in it, the run ends with the same model.
#[test]
#[allow(clippy::print_stderr)] // What it took.
fn hostile_cache_of_features_changes_nothing() {
    let workspace = Fixture::Weights.copy();
    make_outside(&workspace);
    let train = |run: &str| workspace.head_training(&["--run-dir", run, "--set", "network.cache=cache"]);
    workspace.end(train("alone")).with_code(0);
    let model = |run: &str| fs::read(workspace.path(run).join("model.safetensors")).unwrap();
    fs::rename(workspace.path("cache"), workspace.path("kept")).unwrap();
    let honest = measured(train("honest"));
    let mut worst = Worst::default();
    for (n, case) in cases(&places(&workspace.path("kept"))).into_iter().enumerate() {
        let run = format!("run-{n}");
        let ended = endured(&workspace, "cache", case, train(&run));
        ended.is_modest(&honest, &format!("{case:?}"));
        worst.count(&ended);
        assert_eq!(ended.code, Some(0), "{case:?}: {}", ended.text);
        assert!(model(&run) == model("alone"), "{case:?}");
    }
    eprintln!("{worst}");
}

fn sweep_file(workspace: &Workspace, more: &str) {
    let keys = TINY.iter().map(|setting| setting.replacen('=', " = ", 1) + "\n").collect::<Vec<_>>().concat();
    let text = format!(
        "[all]\n{keys}train.steps = 4\n{more}\n[[grid]]\nrecipe = \"cpu-fashion-mnist\"\nseeds = [1]\n"
    );
    fs::write(workspace.path("grid.toml"), text).unwrap();
}

#[test]
#[allow(clippy::print_stderr)] // What it took.
fn hostile_sweep_folder_leads_nowhere() {
    let workspace = new_workspace().with_garments();
    make_outside(&workspace);
    sweep_file(&workspace, "");
    let sweep = |folder: &str| {
        let arguments = ["--data", "garments", "--threads", "1", "--sweep-dir", folder];
        workspace.command(&[&["sweep", "grid.toml"], &arguments[..]].concat())
    };
    let honest = measured(sweep("kept"));
    assert_eq!(honest.code, Some(0), "{}", honest.text);
    let runs = workspace.names("kept/runs");
    let [name] = &runs[..] else { panic!("{runs:?}") };
    // So that there is something left to do.
    fs::remove_dir_all(workspace.path("kept/runs").join(name)).unwrap();
    let records = ["claims", "attempts", "failed"].map(String::from).to_vec();
    let files =
        [format!("claims/{name}.lock"), format!("attempts/{name}.json"), format!("failed/{name}.json")];
    let others =
        ["runs".to_owned(), format!("runs/{name}"), "summary.csv".to_owned(), "summary.json".to_owned()];
    let places: Vec<String> = records.into_iter().chain(files).chain(others).collect();
    let mut worst = Worst::default();
    for case in cases(&places) {
        let ended = endured(&workspace, "hostile", case, sweep("hostile"));
        ended.is_modest(&honest, &format!("{case:?}"));
        worst.count(&ended);
    }
    // A link in the place of a run is refused in a sentence.
    let run = format!("runs/{name}");
    let ended = endured(&workspace, "hostile", (&run, "folder"), sweep("hostile"));
    assert_eq!(ended.code, Some(1), "{}", ended.text);
    assert!(ended.text.contains(name) && ended.text.contains("a symbolic link"), "{}", ended.text);
    eprintln!("{worst}");
}

/// A sweep file is not the user's own word on where to write.
#[test]
fn sweep_file_names_no_cache_outside() {
    let workspace = Fixture::Weights.copy();
    make_outside(&workspace);
    let outside = workspace.path("outside").to_str().unwrap().to_owned();
    let sweep = |cache: &str, more: &[&str]| {
        let keys = TINY.iter().filter(|setting| !setting.starts_with("labels."));
        let keys = keys.map(|setting| setting.replacen('=', " = ", 1) + "\n").collect::<Vec<_>>().concat();
        let head = "network.weights = \"tiny\"\nnetwork.dimensions = 8\ntrain.steps = 2\n";
        let text = format!(
            "[all]\n{keys}{head}network.cache = {}\n[[grid]]\nrecipe = \"head-folder\"\nseeds = [1]\n",
            serde_json::json!(cache)
        );
        fs::write(workspace.path("evil.toml"), text).unwrap();
        let arguments = ["sweep", "evil.toml", "--data", "own", "--threads", "1"];
        workspace.run(&[&arguments[..], more].concat())
    };
    let before = outside_of(&workspace);
    for cache in [outside.as_str(), "../elsewhere", "below/../../elsewhere"] {
        let refused = sweep(cache, &[]).with_code(2);
        refused.reports(&["evil.toml", "network.cache", "--set network.cache="]);
    }
    assert!(outside_of(&workspace) == before);
    sweep("below/features", &[]).with_code(0);
    assert_eq!(workspace.names("below/features").len(), 1);
    sweep(&outside, &["--sweep-dir", "again", "--set", "network.cache=named"]).with_code(0);
    assert_eq!(workspace.names("named").len(), 1);
    assert!(outside_of(&workspace) == before);
}

#[test]
fn report_writes_through_no_link_and_over_no_file_of_others() {
    let workspace = Fixture::Garments.copy();
    make_outside(&workspace);
    workspace.run(&["report", "first"]).with_code(0);
    let before = outside_of(&workspace);
    fs::remove_dir_all(workspace.path("report")).unwrap();
    symlink(workspace.path("outside"), workspace.path("report")).unwrap();
    let refused = workspace.run(&["report", "first"]).with_code(2);
    refused.reports(&["report", "a symbolic link"]);
    assert!(outside_of(&workspace) == before);
    fs::remove_file(workspace.path("report")).unwrap();
    for mine in ["[1, 2]", "{\"format\": 1}", "mine", ""] {
        fs::write(workspace.path("report.json"), mine).unwrap();
        let refused = workspace.run(&["report", "first"]).with_code(2);
        refused.reports(&["report.json exists", "--output FILE"]);
        assert_eq!(fs::read_to_string(workspace.path("report.json")).unwrap(), mine);
    }
}

#[test]
fn predict_replaces_no_file_of_others_beside_its_output() {
    let workspace = Fixture::Photos.copy();
    let predict = |out: &str, more: &[&str]| {
        let arguments = ["predict", "run", "photos/cat", "--threads", "1", "--out", out];
        workspace.run(&[&arguments[..], more].concat())
    };
    for (out, beside) in [("x.csv", "x.csv.predict.json"), ("x.parquet", "x.parquet.parts.jsonl")] {
        for more in [&[][..], &["--resume"]] {
            for mine in ["{\"my\": 1}\n", "mine\n"] {
                fs::write(workspace.path(beside), mine).unwrap();
                let refused = predict(out, more).with_code(2);
                refused.reports(&[beside, "--out"]);
                assert_eq!(fs::read_to_string(workspace.path(beside)).unwrap(), mine);
                assert!(!workspace.path(out).exists());
            }
        }
        fs::remove_file(workspace.path(beside)).unwrap();
        // What a removed output of ours left is.
        predict(out, &[]).with_code(0);
        let _ = fs::remove_file(workspace.path(out));
        let _ = fs::remove_dir_all(workspace.path(out));
        predict(out, &[]).with_code(0);
    }
}
