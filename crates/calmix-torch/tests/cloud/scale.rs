//! A hundred thousand images in a hundred shards, from the disk, from a web server and from moto, through faults: the same bits
//! on any number of processes, few fetches, little waiting. Takes a quarter of an hour, so that only the nightly tier runs it.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;

use calmix_testkit::servers::{Fault, FaultProxy, Faults, FileServer};
use calmix_testkit::tier;
use calmix_testkit::workspace::Workspace;

use super::moto_server::{Moto, at};
use super::shards::{assert_same, training, workspace_of};

const NAMES: &str = "{train-{000..099},test-000}.tar";
const KINDS: [Fault; 4] = [Fault::Late, Fault::Short, Fault::Status500, Fault::Reset];
/// 200 steps of 448 of 100,000 samples.
const EPOCHS: f64 = 200.0 * 448.0 / 100_000.0;

fn run(workspace: &Workspace, data: &str, name: &str, processes: &str, limit: f64) -> Command {
    let mut more = vec!["--set", "train.steps=200", "--set", "train.batch=64", "--set", "train.ratio=7"];
    more.extend(["--set", "dataset.block=8", "--set", "labels.count=25", "--set", "augment.size=16"]);
    more.extend(["--set", "evaluate.every=200", "--set", "checkpoint.every=100", "--set", "log.every=20"]);
    more.extend(["--set", "evaluate.pseudo_labels=false", "--prepared", "table"]);
    if processes != "1" {
        more.extend(["--processes", processes]);
    }
    let mut command = training(workspace, data, name, &more);
    command.env("CALMIX_SHARD_CACHE_GB", limit.to_string());
    command
}

/// The mean share of the time in which the engine waited for data, from the second line on.
fn waiting(run: &Path) -> f64 {
    let lines = fs::read_to_string(run.join("timing.jsonl")).unwrap();
    let shares: Vec<f64> = lines
        .lines()
        .skip(1)
        .filter_map(|line| {
            let (_, rest) = line.split_once("\"waiting\":")?;
            rest.split([',', '}']).next()?.trim().parse().ok()
        })
        .collect();
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

/// Fetches of shards for training: their mean, and the most of any.
fn fetches(gets: &HashMap<String, usize>) -> (f64, usize) {
    let counts: Vec<usize> =
        gets.iter().filter(|(path, _)| path.contains("train-")).map(|(_, &count)| count).collect();
    (counts.iter().sum::<usize>() as f64 / 100.0, counts.into_iter().max().unwrap_or(0))
}

#[test]
fn hundred_shards_have_the_same_bits_everywhere() {
    if !tier::is_exhaustive() {
        return;
    }
    let workspace = workspace_of(100, 1_000);
    let largest = fs::read_dir(workspace.path("shards")).unwrap().flatten();
    let largest = largest.map(|entry| entry.metadata().unwrap().len()).max().unwrap() as f64;
    // Two blocks of eight for each of four shards of a step, and the labelled samples: two thirds of the dataset.
    let limit = 68.0 * largest / 1e9;
    workspace.end(workspace.command(&["prepare", "shards", "--to", "table"])).with_code(0);
    workspace.end(run(&workspace, "shards", "disk", "1", limit)).with_code(0);
    let mut lines = vec![format!("disk, 1 process: waiting {:.3}", waiting(&workspace.path("disk")))];
    let mut compare = |name: &str, gets: &HashMap<String, usize>, faults: usize| {
        assert_same(&workspace.path("disk"), &workspace.path(name));
        let (mean, most) = fetches(gets);
        let waiting = waiting(&workspace.path(name));
        lines.push(format!(
            "{name}: waiting {waiting:.3}, requests per shard {mean:.2}, at most {most}, {faults} faults"
        ));
        (mean, waiting)
    };
    let server = FileServer::start(&workspace.path("shards"), Faults::default());
    let url = format!("{}/{NAMES}", server.address);
    workspace.end(run(&workspace, &url, "web-1", "1", limit)).with_code(0);
    // Once to compare the shards with the table, whose files have other times, some for the labelled samples, and all for the
    // share of an epoch that was trained, with the block after it.
    let (mean, _) = compare("web-1", &server.faults.gets(), 0);
    assert!(mean <= 1.0 + 1.2 * EPOCHS, "{mean}");
    for processes in ["2", "4"] {
        let server = FileServer::start(&workspace.path("shards"), Faults::new(5, &KINDS));
        let url = format!("{}/{NAMES}", server.address);
        let name = format!("web-{processes}");
        workspace.end(run(&workspace, &url, &name, processes, limit)).with_code(0);
        compare(&name, &server.faults.gets(), server.faults.happened.load(Ordering::Relaxed));
    }
    if let Some(moto) = Moto::start(workspace.folder()) {
        moto.upload(&workspace.path("shards"), "data");
        for processes in ["1", "4"] {
            let proxy = FaultProxy::start(&moto.address, Faults::new(5, &KINDS));
            let name = format!("moto-{processes}");
            let command = run(&workspace, "s3://bucket/data", &name, processes, limit);
            workspace.end(at(&proxy.address, command)).with_code(0);
            compare(&name, &proxy.faults.gets(), proxy.faults.happened.load(Ordering::Relaxed));
        }
    }
    // For BENCHMARKS.md: `--no-capture` shows it.
    #[allow(clippy::print_stderr)]
    for line in lines {
        eprintln!("{line}");
    }
}
