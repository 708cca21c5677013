//! docs/guides/rounds.md: the loop of predicting, selecting by the page's own SQL, and training on the selection.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use calmix_testkit::dataset_files::shard;
use calmix_testkit::png_file::noise;
use calmix_testkit::python::interpreter;
use calmix_testkit::workspace::{TINY, Workspace};
use serde_json::Value;

use super::fixture::Fixture;
use super::predict::{predict, rows};

/// Runs every query in the current folder, and prints the rows of the lists that they write.
const RUN_SQL: &str = "
import json, sys
import duckdb
for query in json.loads(sys.argv[1]):
    duckdb.sql(query)
for name in sys.argv[2:]:
    for row in duckdb.sql(f\"SELECT '{name}' AS list, path, label, confidence FROM '{name}'\").fetchall():
        print(json.dumps(dict(zip(['list', 'path', 'label', 'confidence'], row))))
";

/// The queries of the page.
fn queries() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/rounds.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = page.split("```sql\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// Ten shards of images, of which every fourth has the same pixels as one before it.
fn with_tars(workspace: &Workspace) {
    fs::create_dir(workspace.path("shards")).unwrap();
    for tar in 0..10 {
        let mut members: Vec<(String, Vec<u8>)> = Vec::new();
        for n in 0..16 {
            let seed = if n % 4 == 3 { tar * 100 } else { tar * 100 + n };
            members.push((format!("{n:02}.png"), noise(seed)));
            if tar < 2 {
                members.push((format!("{n:02}.cls"), (n % 2).to_string().into()));
            }
        }
        let members: Vec<(&str, &[u8])> =
            members.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        let kind = if tar < 2 { "train" } else { "unlabelled" };
        shard(&workspace.path(&format!("shards/{kind}-{tar}.tar")), &members);
    }
}

/// The paths of each list.
fn selected(workspace: &Workspace, queries: &[String], lists: &[&str]) -> BTreeMap<String, Vec<Value>> {
    let python: PathBuf = interpreter("duckdb", "CALMIX_DUCKDB_PYTHON");
    let queries = Value::from(queries).to_string();
    let mut command = Command::new(python);
    command.args(["-c", RUN_SQL, &queries]).args(lists).current_dir(workspace.folder());
    let output = workspace.end(command).with_code(0);
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for row in rows(&output.stdout) {
        found.entry(row["list"].as_str().unwrap().to_owned()).or_default().push(row);
    }
    found
}

#[test]
fn queries_of_the_page_select_a_round() {
    let workspace = Fixture::Photos.copy();
    with_tars(&workspace);
    for index in ["1/2", "2/2"] {
        let out = ["--features", "--part-rows", "7", "--out", "predictions.parquet", "--shard", index];
        predict(&workspace, &[&["shards"], &out[..]].concat()).with_code(0);
    }
    let json = predict(&workspace, &["shards", "--format", "jsonl", "--features"]).with_code(0).stdout;
    let predicted: BTreeMap<String, Value> =
        rows(&json).into_iter().map(|row| (row["path"].as_str().unwrap().to_owned(), row)).collect();
    assert_eq!(predicted.len(), 160);
    // The thresholds and numbers that make a difference among 160 images of noise.
    let mut confidences: Vec<f64> =
        predicted.values().map(|row| row["confidence"].as_f64().unwrap()).collect();
    confidences.sort_by(f64::total_cmp);
    let threshold = confidences[60];
    let mut queries = queries();
    assert_eq!(queries.len(), 3);
    for query in &mut queries {
        let mut changed = query.replace(">= 0.95", &format!(">= {threshold}"));
        changed = changed.replace(">= 0.6", &format!(">= {threshold}"));
        // The last one keeps all that are left without copies.
        if query.contains("balanced.parquet") {
            changed = changed.replace("<= 1000", "<= 5");
        }
        assert!(changed != *query, "{query}");
        *query = changed;
    }
    let lists = ["confident.parquet", "balanced.parquet", "picked.parquet"];
    let found = selected(&workspace, &queries, &lists);
    let above: Vec<&String> = predicted
        .iter()
        .filter(|(_, row)| row["confidence"].as_f64().unwrap() as f32 >= threshold as f32)
        .map(|(path, _)| path)
        .collect();
    let paths =
        |list: &str| -> Vec<&str> { found[list].iter().map(|row| row["path"].as_str().unwrap()).collect() };
    assert_eq!(paths("confident.parquet"), above);
    let labels: BTreeSet<&str> =
        above.iter().map(|path| predicted[*path]["label"].as_str().unwrap()).collect();
    for label in &labels {
        let of_class = |list: &str| found[list].iter().filter(|row| row["label"] == **label).count();
        let available = above.iter().filter(|path| predicted[**path]["label"] == **label).count();
        assert_eq!(of_class("balanced.parquet"), available.min(5), "{label}");
    }
    // Of images with the same pixels one is left.
    let features = |paths: &[&str]| -> BTreeSet<String> {
        paths.iter().map(|path| predicted[*path]["features"].to_string()).collect()
    };
    let picked = paths("picked.parquet");
    let different = features(&paths("confident.parquet"));
    assert!(different.len() < above.len(), "no copies above the threshold");
    assert_eq!((picked.len(), features(&picked)), (different.len(), different));

    let mut train = workspace.command(&["train", "cpu-folder", "--data", "shards", "--threads", "1"]);
    for setting in TINY.iter().chain(&["train.steps=2", "network.name=wrn-10-1", "labels.keep=per-class"]) {
        train.args(["--set", setting]);
    }
    train.args(["--unlabelled", "picked.parquet", "--run-dir", "round-1"]);
    workspace.end(train).with_code(0).reports(&["unlabelled (listed in [HERE]/picked.parquet)"]);
}

/// Killed among its shards, `predict` goes on: what is written stays as it is, and no image comes twice.
#[test]
fn killed_prediction_of_shards_repeats_none() {
    let workspace = Fixture::Photos.copy();
    with_tars(&workspace);
    let arguments = ["shards", "--out", "out.parquet", "--batch", "4", "--part-rows", "10", "--resume"];
    let mut kills = 0;
    let mut before: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    while kills < 4 {
        let mut command =
            workspace.command(&[&["predict", "run", "--threads", "1"], &arguments[..]].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        let parts = || {
            let entries = fs::read_dir(workspace.path("out.parquet")).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            names.filter(|name| name.starts_with("part-")).collect::<BTreeSet<_>>()
        };
        // Two parts more, which end in the middle of shards of 16 images.
        while parts().len() < before.len() + 2 && child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < Duration::from_mins(1));
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for (name, bytes) in &before {
            let now = fs::read(workspace.path("out.parquet").join(name)).unwrap();
            assert!(now == *bytes, "{name} was written again");
        }
        let read = |name: String| {
            let bytes = fs::read(workspace.path("out.parquet").join(&name)).unwrap();
            (name, bytes)
        };
        before = parts().into_iter().map(read).collect();
        kills += 1;
    }
    assert!(before.len() >= 4, "{:?}", before.keys());
    predict(&workspace, &arguments).with_code(0).reports(&["images in addition to"]);
    let all =
        "COPY (SELECT path, label, confidence FROM 'out.parquet/*.parquet') TO 'all.parquet'".to_owned();
    let found = selected(&workspace, &[all], &["all.parquet"]);
    let paths: BTreeSet<&str> =
        found["all.parquet"].iter().map(|row| row["path"].as_str().unwrap()).collect();
    assert_eq!((found["all.parquet"].len(), paths.len()), (160, 160));
    predict(&workspace, &arguments).with_code(0).reports(&["0 images in addition to 160 from before"]);
}
