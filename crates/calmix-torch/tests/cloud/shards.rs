//! Shards of small images, runs on them, and how two runs are compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use calmix_testkit::png_file::{Pixels, png};
use calmix_testkit::workspace::{TINY, Workspace};

use crate::program::new_workspace;

/// Images of a shard.
pub(crate) const IMAGES: u32 = 16;

/// A workspace with `count` shards for training in `shards`, and one for testing.
pub(crate) fn workspace(count: u32) -> Workspace {
    workspace_of(count, IMAGES)
}

/// The same, with `images` images in each shard.
pub(crate) fn workspace_of(count: u32, images: u32) -> Workspace {
    let workspace = new_workspace();
    let folder = workspace.path("shards");
    fs::create_dir(&folder).unwrap();
    for shard in 0..count {
        fs::write(folder.join(format!("train-{shard:03}.tar")), tar(shard, images)).unwrap();
    }
    fs::write(folder.join("test-000.tar"), tar(1_000, images)).unwrap();
    workspace
}

/// A shard whose images have two classes, light and dark.
fn tar(shard: u32, images: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in 0..images {
        let class = (shard * 7 + n * 5) % 3 % 2;
        let shade = (class * 128 + (shard * 31 + n * 17) % 100) as u8;
        add(&mut bytes, &format!("{n:04}.png"), &image(shade, n as u8));
        add(&mut bytes, &format!("{n:04}.cls"), class.to_string().as_bytes());
    }
    bytes.extend([0; 1024]);
    bytes
}

fn image(shade: u8, mark: u8) -> Vec<u8> {
    png(Pixels::Grey, [8, 8], |place| shade.wrapping_add(place as u8 % 8 * (mark % 5)))
}

/// Adds a member in the format of POSIX.
fn add(tar: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    header[136..147].copy_from_slice(b"00000000000");
    header[148..156].copy_from_slice(b"        ");
    header[156] = b'0';
    header[257..262].copy_from_slice(b"ustar");
    header[263..265].copy_from_slice(b"00");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    tar.extend(header);
    tar.extend(content);
    tar.resize(tar.len().next_multiple_of(512), 0);
}

/// A training on `data` in the order by block, with `more` arguments.
pub(crate) fn training(workspace: &Workspace, data: &str, run: &str, more: &[&str]) -> Command {
    let mut command = workspace.command(&[
        "train",
        "cpu-folder",
        "--data",
        data,
        "--run-dir",
        run,
        "--threads",
        "1",
        "--quiet",
    ]);
    let own = [
        "train.shards=4",
        "train.ratio=2",
        "network.name=wrn-10-1",
        "dataset.order=blocks",
        "dataset.block=2",
        "labels.count=3",
        "labels.keep=per-class",
    ];
    for setting in TINY.iter().filter(|setting| !setting.starts_with("labels.")).chain(&own) {
        command.args(["--set", setting]);
    }
    command.args(more).env("CALMIX_SHARD_CACHE", workspace.path(&format!("cache of {run}")));
    command
}

/// The files of a run that decide what it is: all but those about paths, times and processes.
pub(crate) fn results(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let single =
        ["events.jsonl", "model.safetensors", "model.json", "result.json", "split.json", "margins.json"];
    for name in single {
        found.insert(name.to_owned(), fs::read(run.join(name)).unwrap_or_default());
    }
    let mut folders = vec![run.join("predictions"), run.join("checkpoints")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if !["recipe.toml", "MANIFEST"].iter().any(|own| entry.file_name() == *own) {
                // The recipe names the path of the dataset, and the manifest has the hash of the recipe.
                let name = path.strip_prefix(run).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Fails, and names the files, unless both runs have the same results.
#[track_caller]
pub(crate) fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (results(one), results(other));
    assert!(one["model.safetensors"].len() > 1_000 && one.len() > 8, "{:?}", one.keys());
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    let differing: Vec<_> =
        one.iter().filter(|(name, bytes)| other[*name] != **bytes).map(|(name, _)| name).collect();
    assert!(differing.is_empty(), "{differing:?}");
}
