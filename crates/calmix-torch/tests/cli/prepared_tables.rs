//! Where tables and runs are written, when a table is stale, and how runs share one.

use std::fs;
use std::process::Command;

use calmix_testkit::workspace::{CommandOutput, Workspace};

use super::fixture::Fixture;
use crate::program::new_workspace;

/// A command that runs in a folder of the workspace.
fn within(workspace: &Workspace, folder: &str, mut command: Command) -> CommandOutput {
    command.current_dir(workspace.path(folder));
    workspace.end(command)
}

#[test]
fn nothing_is_written_into_the_dataset() {
    let workspace = new_workspace().with_photos();
    let before = workspace.names("photos");
    let prepared = within(&workspace, "photos", workspace.command(&["prepare", "."])).with_code(0);
    prepared.prints(&[
        "32 samples: train 20, unlabelled 12\n",
        "written to ../prepared/photos, with this summary in report.json\n",
        "next: calmix train --data . --prepared ../prepared/photos\n",
    ]);
    let trained = within(&workspace, "photos", workspace.folder_training(".", &[])).with_code(0);
    trained.prints(&["written to ../runs/cpu-folder-1; ", "next: calmix report ../runs/cpu-folder-1\n"]);
    trained.reports(&["data      [HERE]/photos ("]);
    let deeper = within(&workspace, "photos/cat", workspace.folder_training("..", &[])).with_code(0);
    deeper.prints(&["written to ../../runs/cpu-folder-2; "]);
    assert_eq!(workspace.names("photos"), before);
    assert_eq!(workspace.names("."), ["photos", "prepared", "runs"]);
}

#[test]
fn output_of_calmix_is_not_a_class() {
    let workspace = new_workspace().with_photos();
    workspace.run(&["prepare", "photos", "--to", "photos/prepared/mine"]).with_code(0);
    workspace.end(workspace.folder_training("photos", &["--run-dir", "photos/runs/one"])).with_code(0);
    workspace.end(workspace.folder_training("photos", &["--run-dir", "photos/result"])).with_code(0);
    workspace.run(&["inspect", "photos"]).with_code(0).prints(&[
        "32 samples: train 20, unlabelled 12\n",
        "2 classes, ",
        "photos/prepared: calmix wrote this folder, so it is not part of the dataset",
        "photos/runs: calmix wrote this folder, so it is not part of the dataset",
        "photos/result: calmix wrote this folder, so it is not part of the dataset",
    ]);
}

#[test]
fn a_stale_table_is_noticed() {
    let workspace = new_workspace().with_photos();
    workspace.run(&["prepare", "photos"]).with_code(0);
    let prepared = ["--prepared", "prepared/photos"];
    let train = || workspace.end(workspace.folder_training("photos", &prepared));
    // What is not an image does not matter.
    fs::write(workspace.path("photos/notes.txt"), "nice").unwrap();
    train().with_code(0);
    fs::copy(workspace.path("photos/dog/1.png"), workspace.path("photos/dog/new.png")).unwrap();
    train().with_code(2).reports(&[
        "error: [HERE]/prepared/photos: stale: [HERE]/photos has 34 files, but had 33 when it was prepared\n",
        "try: calmix prepare [HERE]/photos --to NEW_FOLDER, then `--prepared NEW_FOLDER`; or leave `--prepared` out\n",
    ]);
    assert_eq!(workspace.names("runs"), ["cpu-folder-1"]);
    fs::remove_file(workspace.path("photos/dog/new.png")).unwrap();
    train().with_code(0);
    fs::copy(workspace.path("photos/dog/2.png"), workspace.path("photos/dog/1.png")).unwrap();
    train().with_code(2).reports(&["stale: files in [HERE]/photos have changed since it was prepared\n"]);
}

#[test]
fn the_table_of_another_folder_is_noticed() {
    let workspace = new_workspace().with_photos();
    workspace.images("big/cat", 0, 12);
    workspace.images("big/dog", 60, 12);
    workspace.run(&["prepare", "big"]).with_code(0);
    let foreign = ["--prepared", "prepared/big"];
    workspace.end(workspace.folder_training("photos", &foreign)).with_code(2).reports(&[
        "error: [HERE]/prepared/big: prepared from another dataset: [HERE]/big, not [HERE]/photos\n",
        "try: ",
    ]);
    // A dataset that was moved as a whole is the same one.
    fs::rename(workspace.path("big"), workspace.path("moved")).unwrap();
    workspace.end(workspace.folder_training("moved", &foreign)).with_code(0);
}

#[test]
fn the_table_of_another_kind_of_files_is_noticed() {
    let workspace = new_workspace().with_garments();
    workspace.run(&["prepare", "garments", "--source", "mnist"]).with_code(0);
    let output = workspace.end(workspace.training(2, &["--prepared", "prepared/garments"])).with_code(2);
    output.reports(&["prepared as mnist, but dataset.source is fashion-mnist"]);
}

#[test]
fn runs_share_a_table() {
    use std::os::unix::fs::MetadataExt;

    let workspace = new_workspace().with_garments();
    let inode = |name: &str| fs::metadata(workspace.path(name)).unwrap().ino();
    workspace.end(workspace.training(8, &[])).with_code(0);
    let second = workspace.end(workspace.training(8, &[])).with_code(0);
    second.reports(&[
        "sharing the prepared dataset runs/cpu-fashion-mnist-1/prepared\n",
        "warning: 40 samples appear in two subsets",
    ]);
    let table = |run: u32, file: &str| inode(&format!("runs/cpu-fashion-mnist-{run}/prepared/{file}"));
    for file in ["manifest.json", "samples.bin", "parts.bin", "names.bin", "report.json"] {
        assert_eq!(table(1, file), table(2, file), "{file}");
    }
    let result =
        |run: u32| fs::read(workspace.path(&format!("runs/cpu-fashion-mnist-{run}/result.json"))).unwrap();
    assert!(result(1) == result(2));

    // Each run is whole without the other, and resumes to the same bytes.
    fs::remove_dir_all(workspace.path("runs/cpu-fashion-mnist-1/prepared")).unwrap();
    fs::remove_dir_all(workspace.path("runs/cpu-fashion-mnist-2/checkpoints/step-000000008")).unwrap();
    fs::remove_file(workspace.path("runs/cpu-fashion-mnist-2/result.json")).unwrap();
    workspace.run(&["resume", "runs/cpu-fashion-mnist-2"]).with_code(0);
    assert!(result(1) == result(2));

    // A dataset that has changed is prepared anew.
    let pixels = workspace.path("garments/t10k-images-idx3-ubyte");
    let mut bytes = fs::read(&pixels).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&pixels, bytes).unwrap();
    let third = workspace.end(workspace.training(8, &[])).with_code(0);
    assert!(!third.stderr.contains("sharing"), "{}", third.stderr);
}

/// What the scan found is of use to the reader alone: a run does not need it.
#[cfg(unix)]
#[test]
fn shared_table_with_a_damaged_report_is_used() {
    let workspace = new_workspace().with_garments();
    workspace.end(workspace.training(2, &[])).with_code(0);
    let report = workspace.path("runs/cpu-fashion-mnist-1/prepared/report.json");
    let text = fs::read_to_string(&report).unwrap();
    fs::write(&report, &text[..text.len() / 2]).unwrap();
    let second = workspace.end(workspace.training(2, &[])).with_code(0);
    second.reports(&[
        "sharing the prepared dataset runs/cpu-fashion-mnist-1/prepared\n",
        "warning: ",
        "report.json: EOF while",
    ]);
}

/// A table that is gone is made again; one that has changed is noticed, with what to do.
#[test]
fn resuming_without_its_table() {
    let workspace = Fixture::Photos.copy();
    let undo = || {
        let _ = fs::remove_file(workspace.path("run/result.json"));
        fs::remove_dir_all(workspace.path("run/checkpoints/step-000000004")).unwrap();
        fs::remove_dir_all(workspace.path("run/prepared")).unwrap();
    };
    undo();
    workspace.run(&["resume", "run"]).with_code(0);
    undo();
    fs::remove_file(workspace.path("photos/dog/1.png")).unwrap();
    workspace.run(&["resume", "run"]).with_code(2).reports(&[
        "run: the dataset has changed: its fingerprint was ",
        "restore the files that it was prepared from, or start a new run\n",
    ]);
}
