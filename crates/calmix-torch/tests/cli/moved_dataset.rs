//! A dataset that has moved since the run started.

use std::fs;

use super::fixture::Fixture;
use crate::program::new_workspace;

#[test]
fn a_dataset_that_has_moved_is_found_again() {
    let workspace = Fixture::Garments.copy();
    let before = workspace.run(&["evaluate", "first"]).with_code(0);
    fs::rename(workspace.path("garments"), workspace.path("elsewhere")).unwrap();
    let lost = workspace.run(&["evaluate", "first"]).with_code(2);
    lost.reports(&[
        "error: [HERE]/garments: the dataset of this run has moved or was deleted\n",
        "try: calmix evaluate first --data NEW_FOLDER\n",
    ]);
    let recipe = fs::read(workspace.path("first/recipe.toml")).unwrap();
    let found = workspace.run(&["evaluate", "first", "--data", "elsewhere"]).with_code(0);
    assert_eq!(found.stdout, before.stdout);
    assert_eq!(fs::read(workspace.path("first/recipe.toml")).unwrap(), recipe, "evaluate writes nothing");
    // A finished run can be shown without its dataset.
    workspace.run(&["resume", "first"]).with_code(0).prints(&["this run is already finished\n"]);
}

#[test]
fn a_stopped_run_goes_on_from_the_new_place_and_keeps_it() {
    let workspace = Fixture::Garments.copy();
    let whole = fs::read(workspace.path("first/result.json")).unwrap();
    // The state of a run that was killed after its first checkpoint.
    fs::remove_dir_all(workspace.path("first/checkpoints/step-000000008")).unwrap();
    fs::remove_file(workspace.path("first/result.json")).unwrap();
    fs::rename(workspace.path("garments"), workspace.path("elsewhere")).unwrap();
    workspace.run(&["resume", "first"]).with_code(2).reports(&[
        "error: [HERE]/garments: the dataset of this run has moved or was deleted\n",
        "try: calmix resume first --data NEW_FOLDER\n",
    ]);
    workspace.run(&["resume", "first", "--data", "elsewhere"]).with_code(0);
    assert!(fs::read(workspace.path("first/result.json")).unwrap() == whole);
    workspace.run(&["evaluate", "first"]).with_code(0);
}

#[test]
fn another_dataset_is_refused() {
    let workspace = Fixture::Garments.copy();
    // The same files, except for one pixel of the last test image.
    fs::create_dir(workspace.path("others")).unwrap();
    for file in fs::read_dir(workspace.path("garments")).unwrap() {
        let file = file.unwrap();
        let mut bytes = fs::read(file.path()).unwrap();
        if file.file_name() == "t10k-images-idx3-ubyte" {
            *bytes.last_mut().unwrap() ^= 1;
        }
        fs::write(workspace.path("others").join(file.file_name()), bytes).unwrap();
    }
    let files = workspace.run(&["evaluate", "first", "--data", "others"]).with_code(1);
    files.reports(&["others/t10k-images-idx3-ubyte", "sample 139", "when prepared"]);
    // After preparing it again, the fingerprint differs.
    workspace.run(&["prepare", "others", "--source", "fashion-mnist"]).with_code(0);
    for command in ["evaluate", "resume"] {
        if command == "resume" {
            fs::remove_dir_all(workspace.path("first/checkpoints/step-000000008")).unwrap();
        }
        let moved = [command, "first", "--data", "others", "--prepared", "prepared/others"];
        workspace.run(&moved).with_code(2).reports(&[
            "first: the dataset has changed: its fingerprint was ",
            " when the run started and is ",
        ]);
    }
}

#[test]
fn a_table_that_is_gone_is_named() {
    let workspace = new_workspace().with_garments();
    workspace.run(&["prepare", "garments", "--source", "fashion-mnist"]).with_code(0);
    workspace
        .end(workspace.training(8, &["--run-dir", "first", "--prepared", "prepared/garments"]))
        .with_code(0);
    fs::rename(workspace.path("prepared"), workspace.path("tables")).unwrap();
    workspace.run(&["evaluate", "first"]).with_code(2).reports(&[
        "error: [HERE]/prepared/garments: the prepared dataset of this run has moved or was deleted\n",
        "try: calmix evaluate first --prepared NEW_FOLDER\n",
    ]);
    workspace.run(&["evaluate", "first", "--prepared", "tables/garments"]).with_code(0);
}
