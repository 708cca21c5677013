//! `calmix predict --shard`: each process takes whole files and reads no others.

use std::fs;
use std::process::Command;

use calmix_testkit::dataset_files::shard;
use calmix_testkit::png_file::noise;
use calmix_testkit::workspace::Workspace;

use super::fixture::Fixture;
use super::predict::predict;

/// Predicts, and returns the bytes that the process read.
fn bytes_read(workspace: &Workspace, arguments: &[&str]) -> u64 {
    let predict = workspace.command(&[&["predict", "run", "--threads", "1"], arguments].concat());
    // A shell counts what the processes read that it waited for.
    let mut command = Command::new("sh");
    command.args(["-c", "\"$@\" > /dev/null && cat /proc/$$/io", "sh"]);
    command.arg(predict.get_program()).args(predict.get_args());
    for (name, value) in predict.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(workspace.folder());
    let counts = workspace.end(command).with_code(0).stdout;
    counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[test]
fn shards_of_tars_read_every_byte_once() {
    let workspace = Fixture::Photos.copy();
    fs::create_dir_all(workspace.path("tars/sub")).unwrap();
    for tar in 0..12 {
        let images: Vec<_> = (0..16).map(|n| (format!("{n}.png"), noise(tar * 100 + n))).collect();
        let mut members: Vec<(&str, &[u8])> = Vec::new();
        for (name, bytes) in &images {
            members.push((name, bytes));
        }
        let folder = if tar % 2 == 0 { "tars" } else { "tars/sub" };
        shard(&workspace.path(&format!("{folder}/{tar}.tar")), &members);
    }
    // Neither is read by the shards that it is not in.
    fs::write(workspace.path("tars/broken.tar"), b"not a tar").unwrap();
    fs::copy(workspace.path("photos/cat/0.png"), workspace.path("tars/image")).unwrap();

    let all = predict(&workspace, &["tars"]).with_code(0).stdout;
    let mut expected: Vec<_> = all.lines().skip(1).map(str::to_owned).collect();
    assert_eq!(expected.len(), 12 * 16 + 2);
    expected.sort_unstable();

    fs::write(workspace.path("empty"), "").unwrap();
    let without_images = bytes_read(&workspace, &["--list", "empty", "--out", "none.csv"]);
    let files = ["tars", "tars/sub"].map(|folder| fs::read_dir(workspace.path(folder)).unwrap());
    let size: u64 = files.into_iter().flatten().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    let mut read = 0;
    let mut found = Vec::new();
    for index in 1..=6 {
        let shard = format!("{index}/6");
        read += bytes_read(&workspace, &["tars", "--shard", &shard, "--out", "out.csv"]) - without_images;
        let rows = fs::read_to_string(workspace.path(&format!("out-{index}-of-6.csv"))).unwrap();
        found.extend(rows.lines().skip(1).map(str::to_owned));
    }
    found.sort_unstable();
    assert_eq!(found, expected);
    assert!(read * 10 <= size * 11, "{read} bytes were read of {size}");
}
