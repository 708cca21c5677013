//! When a table is on the disk.

use std::fs;
use std::process::Command;

use calmix_testkit::tier;

use super::new_workspace;

/// A table is on the disk before it has its name, and its name before the command ends.
#[cfg(target_os = "linux")]
#[test]
fn table_is_synchronised_around_its_rename() {
    if !Command::new("strace").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return tier::skipped("there is no strace (Debian: strace)");
    }
    let workspace = new_workspace().with_photos();
    let mut command = Command::new("strace");
    command
        .args(["-f", "-y", "-qq", "-e", "trace=fsync,renameat", "-o", "calls"])
        .arg(env!("CARGO_BIN_EXE_calmix"));
    command.args(["prepare", "photos", "--to", "tables/own"]).current_dir(workspace.folder());
    fs::create_dir(workspace.path("tables")).unwrap();
    workspace.end(command).with_code(0);
    let calls = fs::read_to_string(workspace.path("calls")).unwrap();
    let (before, after) = calls.split_once("/tables>, \"own\")").unwrap();
    let is_synchronised = |calls: &str, ending: &str| {
        calls.lines().any(|line| line.contains("fsync(") && line.contains(&format!("{ending}>)")))
    };
    for name in ["samples.bin", "parts.bin", "names.bin", "manifest.json", "report.json", "source.json"] {
        assert!(is_synchronised(before, &format!("/{name}")), "{name}: {calls}");
    }
    assert!(is_synchronised(before, "/prepared"), "the folder of the table: {calls}");
    assert!(is_synchronised(after, "/tables"), "the folder that it is in: {calls}");
}
