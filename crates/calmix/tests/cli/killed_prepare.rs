//! `calmix prepare` of tars that is killed again and again continues, and writes the same table.

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use calmix_testkit::dataset_files::shard;
use calmix_testkit::png_file::noise;
use calmix_testkit::workspace::Workspace;

use super::new_workspace;

const TARS: u32 = 40;
const TIMEOUT: Duration = Duration::from_mins(2);

/// The files of a table, without the one that names its folder.
fn table(workspace: &Workspace, folder: &str) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for name in workspace.names(folder) {
        if name != "source.json" {
            let bytes = fs::read(workspace.path(&format!("{folder}/{name}"))).unwrap();
            files.push((name, bytes));
        }
    }
    files
}

#[test]
fn ten_kills_leave_the_same_table() {
    let workspace = new_workspace();
    fs::create_dir(workspace.path("tars")).unwrap();
    for tar in 0..TARS {
        let mut members: Vec<(String, Vec<u8>)> = Vec::new();
        for n in 0..8 {
            members.push((format!("{n}.png"), noise(tar * 100 + n)));
            members.push((format!("{n}.cls"), (n % 3).to_string().into_bytes()));
        }
        let members: Vec<(&str, &[u8])> =
            members.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        shard(&workspace.path(&format!("tars/train-{tar:03}.tar")), &members);
    }
    workspace.run(&["prepare", "tars", "--to", "alone"]).with_code(0);
    let expected = table(&workspace, "alone");
    assert!(expected.iter().any(|(name, _)| name == "samples.bin"), "{:?}", workspace.names("alone"));

    // Each kill comes when more tars were read than at the last one.
    let scans = workspace.path(".scanned-killed");
    let kept = || fs::read_dir(&scans).map_or(0, Iterator::count);
    let mut landed = 0;
    for kill in 1..=10 {
        let mut command = workspace.command(&["prepare", "tars", "--to", "killed"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while kept() < 3 * kill && child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < TIMEOUT, "{} tars were read", kept());
            sleep(Duration::from_millis(1));
        }
        landed += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(landed >= 5, "{landed} of 10 kills came before the end");
    if !workspace.path("killed").exists() {
        assert!(kept() > 0, "nothing was kept");
        workspace.run(&["prepare", "tars", "--to", "killed"]).with_code(0);
    }
    assert!(table(&workspace, "killed") == expected, "after {landed} kills");
    assert!(!scans.exists());
}
