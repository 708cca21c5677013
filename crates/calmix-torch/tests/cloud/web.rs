//! Shards on a web server.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use calmix_testkit::servers::{Fault, Faults, FileServer};

use super::shards::{assert_same, training, workspace};

/// The name of 12 shards for training and one for testing.
const NAMES: &str = "{train-{000..011},test-000}.tar";

#[test]
fn web_server_with_faults_trains_to_the_same_bits() {
    let workspace = workspace(12);
    let steps = ["--set", "train.steps=12"];
    workspace.end(training(&workspace, "shards", "disk", &steps)).with_code(0);
    let kinds = [Fault::Short, Fault::Status500, Fault::Reset, Fault::Late];
    for processes in ["1", "2", "4"] {
        let server = FileServer::start(&workspace.path("shards"), Faults::new(4, &kinds));
        let url = format!("{}/{NAMES}", server.address);
        let run = format!("web-{processes}");
        let mut more = steps.to_vec();
        if processes != "1" {
            more.extend(["--processes", processes]);
        }
        workspace.end(training(&workspace, &url, &run, &more)).with_code(0);
        assert_same(&workspace.path("disk"), &workspace.path(&run));
        assert!(server.faults.happened.load(Ordering::Relaxed) >= 8);
    }
}

/// A cache for a third of the dataset: each shard is fetched once to copy the labelled samples, and once per epoch.
#[test]
fn each_shard_is_fetched_once_per_epoch() {
    const EPOCHS: usize = 10;
    let workspace = workspace(12);
    let server = FileServer::start(&workspace.path("shards"), Faults::default());
    let url = format!("{}/{NAMES}", server.address);
    let largest = workspace.path("shards").read_dir().unwrap().flatten();
    let largest = largest.map(|entry| entry.metadata().unwrap().len()).max().unwrap();
    let cache = |mut command: std::process::Command, shards: f64| {
        command.env("CALMIX_SHARD_CACHE_GB", (largest as f64 * shards / 1e9).to_string());
        command
    };
    // 192 samples, of which a step takes 8.
    let steps = format!("train.steps={}", 192 / 8 * EPOCHS);
    let more = ["--set", &steps, "--set", "train.shards=1", "--set", "dataset.block=1"];
    let more =
        [&more[..], &["--set", "evaluate.pseudo_labels=false", "--set", "evaluate.every=100"]].concat();
    let mut prepare = workspace.command(&["prepare", &url, "--to", "table"]);
    prepare.env("CALMIX_SHARD_CACHE", workspace.path("cache of small"));
    workspace.end(cache(prepare, 4.0)).with_code(0);
    let before = server.faults.gets();
    let more = [&more[..], &["--prepared", "table"]].concat();
    workspace.end(cache(training(&workspace, &url, "small", &more), 4.0)).with_code(0);
    let after = server.faults.gets();
    let fetched: HashMap<&String, usize> =
        after.iter().map(|(path, count)| (path, count - before.get(path).unwrap_or(&0))).collect();
    let of_training = fetched.iter().filter(|(path, _)| path.contains("train-"));
    let total: usize = of_training.map(|(_, count)| count).sum();
    assert!(total as f64 <= 1.2 * (12 * EPOCHS) as f64, "{total}: {fetched:?}");
    assert!(total >= 12 * (EPOCHS - 1), "the cache was too large for this test: {fetched:?}");
    // The same bits as from the disk, where nothing leaves.
    workspace.end(training(&workspace, "shards", "disk", &more[..more.len() - 2])).with_code(0);
    assert_same(&workspace.path("disk"), &workspace.path("small"));
    // A cache that is too small is refused with the way out.
    let refused = workspace.end(cache(training(&workspace, &url, "tiny", &more), 1.5)).with_code(2);
    refused.reports(&["bytes", "CALMIX_SHARD_CACHE_GB"]);
}

/// The list names images by their URLs, as `calmix predict` does.
#[test]
fn list_of_urls_restricts_the_pool() {
    let workspace = workspace(4);
    let server = FileServer::start(&workspace.path("shards"), Faults::default());
    let url = format!("{}/{{train-{{000..003}},test-000}}.tar", server.address);
    let name = |shard: u32, n: u32| format!("train-{shard:03}.tar/{n:04}.png");
    let chosen: Vec<String> = (0..12).map(|n| name(1 + n % 2, n)).collect();
    let list = |beginning: &str| {
        let lines: Vec<String> = chosen.iter().map(|name| format!("{beginning}{name}\n")).collect();
        format!("path\n{}", lines.concat())
    };
    std::fs::write(workspace.path("web.csv"), list(&format!("{}/", server.address))).unwrap();
    std::fs::write(workspace.path("disk.csv"), list("shards/")).unwrap();
    let steps = ["--set", "train.steps=4", "--set", "train.shards=1", "--unlabelled"];
    workspace.end(training(&workspace, "shards", "disk", &[&steps[..], &["disk.csv"]].concat())).with_code(0);
    workspace.end(training(&workspace, &url, "web", &[&steps[..], &["web.csv"]].concat())).with_code(0);
    assert_same(&workspace.path("disk"), &workspace.path("web"));
    std::fs::write(workspace.path("other.csv"), list("http://127.0.0.1:1/")).unwrap();
    let refused = workspace.end(training(&workspace, &url, "other", &[&steps[..], &["other.csv"]].concat()));
    let example = format!("such as {}/train-000.tar/0000.png", server.address);
    refused.with_code(2).reports(&["other.csv, line 2", "is not a sample of the dataset", &example]);
}

/// Every image is in all shards, and the cache holds a third of them: once for the table, once to compare the copies.
#[test]
fn copies_are_found_with_two_fetches_per_shard() {
    let workspace = workspace(12);
    let shards = workspace.path("shards");
    for shard in 1..12 {
        std::fs::copy(shards.join("train-000.tar"), shards.join(format!("train-{shard:03}.tar"))).unwrap();
    }
    std::fs::copy(shards.join("train-000.tar"), shards.join("test-000.tar")).unwrap();
    let server = FileServer::start(&shards, Faults::default());
    let mut prepare =
        workspace.command(&["prepare", &format!("{}/{NAMES}", server.address), "--to", "table"]);
    let length = shards.join("train-000.tar").metadata().unwrap().len();
    prepare.env("CALMIX_SHARD_CACHE_GB", (length as f64 * 4.5 / 1e9).to_string());
    prepare.env("CALMIX_SHARD_CACHE", workspace.path("cache"));
    workspace.end(prepare).with_code(0).prints(&["samples appear in two subsets"]);
    let fetched = server.faults.gets();
    assert!(fetched.len() == 13 && fetched.values().all(|&count| count <= 2), "{fetched:?}");
    assert!(fetched.values().any(|&count| count == 2), "the cache was too large for this test: {fetched:?}");
}

#[test]
fn url_that_cannot_be_used_is_explained() {
    let workspace = workspace(1);
    let server = FileServer::start(&workspace.path("shards"), Faults::default());
    let url = format!("{}/train-000.tar", server.address);
    let order = ["--set", "dataset.order=samples"];
    let refused = workspace.end(training(&workspace, &url, "run", &order)).with_code(2);
    refused.reports(&["dataset.order", "use \"blocks\""]);
    let refused = workspace.end(training(&workspace, "shards", "s3://bucket/run", &[])).with_code(2);
    refused.reports(&["s3://bucket/run: a run folder has to be on a file system"]);
    let missing = format!("{}/train-{{000..001}}.tar", server.address);
    let refused = workspace.end(training(&workspace, &missing, "run", &[])).with_code(2);
    refused.reports(&["/train-001.tar: there is no such bucket or object", "check the URL"]);
    let folder = workspace.run(&["prepare", &server.address, "--to", "table"]).with_code(2);
    folder.reports(&["a web server does not list its files", "{000..099}"]);
    let secret = workspace.run(&["prepare", "https://me:word@host/a.tar", "--to", "table"]).with_code(2);
    secret.reports(&["environment variables"]);
    let out = workspace.run(&["prepare", &url, "--to", "s3://bucket/table"]).with_code(2);
    out.reports(&["a prepared dataset has to be on a file system"]);
}
