//! Shards and predictions in S3, as moto serves it.

use std::fs;
use std::process::Command;
use std::sync::atomic::Ordering;

use calmix_testkit::servers::{Fault, FaultProxy, Faults};
use calmix_testkit::workspace::Workspace;

use super::moto_server::{Moto, at};
use super::shards::{IMAGES, assert_same, training, workspace};

#[test]
fn moto_behind_faults_trains_to_the_same_bits() {
    let workspace = workspace(8);
    let Some(moto) = Moto::start(workspace.folder()) else { return };
    moto.upload(&workspace.path("shards"), "data/own");
    let steps = ["--set", "train.steps=8"];
    workspace.end(training(&workspace, "shards", "disk", &steps)).with_code(0);
    let kinds = [Fault::Reset, Fault::Short, Fault::Status500, Fault::Late];
    for processes in ["1", "2"] {
        let proxy = FaultProxy::start(&moto.address, Faults::new(4, &kinds));
        let run = format!("moto-{processes}");
        let mut more = steps.to_vec();
        if processes != "1" {
            more.extend(["--processes", processes]);
        }
        let command = training(&workspace, "s3://bucket/data/own/", &run, &more);
        workspace.end(at(&proxy.address, command)).with_code(0);
        assert_same(&workspace.path("disk"), &workspace.path(&run));
        assert!(proxy.faults.happened.load(Ordering::Relaxed) >= 3);
    }
}

fn predict(workspace: &Workspace, moto: &Moto, cache: &str, arguments: &[&str]) -> Command {
    let mut command = workspace.command(&["predict", "disk", "s3://bucket/data", "--threads", "1"]);
    command.args(arguments).env("CALMIX_SHARD_CACHE", workspace.path(cache));
    at(&format!("http://{}", moto.address), command)
}

#[test]
fn predictions_of_objects_are_those_of_files() {
    let workspace = workspace(5);
    let Some(moto) = Moto::start(workspace.folder()) else { return };
    moto.upload(&workspace.path("shards"), "data");
    workspace.end(training(&workspace, "shards", "disk", &["--set", "train.steps=2"])).with_code(0);
    let local = workspace.run(&["predict", "disk", "shards", "--threads", "1"]).with_code(0).stdout;
    assert_eq!(local.lines().count() as u32, 6 * IMAGES + 1);
    let remote = workspace.end(predict(&workspace, &moto, "cache", &[])).with_code(0).stdout;
    assert_eq!(remote.replace("s3://bucket/data/", "shards/"), local);

    // All shards of the input have the rows of the whole, each once.
    let mut rows: Vec<String> = Vec::new();
    for index in 1..=3 {
        let shard = format!("{index}/3");
        let part =
            workspace.end(predict(&workspace, &moto, "cache", &["--shard", &shard])).with_code(0).stdout;
        rows.extend(part.lines().skip(1).map(str::to_owned));
    }
    rows.sort();
    let mut whole: Vec<String> = remote.lines().skip(1).map(str::to_owned).collect();
    whole.sort();
    assert_eq!(rows, whole);

    // Parquet: the objects are the files that a local folder has.
    let parts = ["--part-rows", "40"];
    let to = |out: &'static str| [&parts[..], &["--out", out]].concat();
    workspace.end(predict(&workspace, &moto, "cache", &to("local.parquet"))).with_code(0);
    workspace.end(predict(&workspace, &moto, "cache", &to("s3://bucket/out/p.parquet"))).with_code(0);
    let object =
        |part: usize| moto.request("GET", &format!("/bucket/out/p.parquet/part-{part:05}.parquet"), b"");
    let file =
        |part: usize| fs::read(workspace.path(&format!("local.parquet/part-{part:05}.parquet"))).unwrap();
    for part in 0..3 {
        assert_eq!(object(part), file(part), "part {part}");
    }
    let again =
        workspace.end(predict(&workspace, &moto, "cache", &to("s3://bucket/out/p.parquet"))).with_code(2);
    again.reports(&["s3://bucket/out/p.parquet: already exists", "--resume"]);
    let csv =
        workspace.end(predict(&workspace, &moto, "cache", &["--out", "s3://bucket/p.csv"])).with_code(2);
    csv.reports(&["only Parquet can be written to object storage"]);

    // What a kill after the second part leaves, continued on another machine: one without this cache.
    let list = "/bucket/out/p.parquet.parts.jsonl";
    let lines = String::from_utf8(moto.request("GET", list, b"")).unwrap();
    let kept: String = lines.split_inclusive('\n').take(2).collect();
    moto.request("PUT", list, kept.as_bytes());
    moto.request("PUT", "/bucket/out/p.parquet/part-00002.parquet", b"another end");
    let resume = [&to("s3://bucket/out/p.parquet")[..], &["--resume"]].concat();
    workspace.end(predict(&workspace, &moto, "other cache", &resume)).with_code(0);
    assert_eq!(object(2), file(2));
    assert_eq!(String::from_utf8(moto.request("GET", list, b"")).unwrap(), lines);
}

#[test]
fn missing_bucket_is_explained() {
    let workspace = workspace(1);
    let Some(moto) = Moto::start(workspace.folder()) else { return };
    let command = workspace.command(&["prepare", "s3://absent/data", "--to", "table"]);
    let refused = workspace.end(at(&format!("http://{}", moto.address), command)).with_code(2);
    refused.reports(&["s3://absent/data: there is no such bucket or object", "check the URL"]);
}
