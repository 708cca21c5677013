//! Two processes with one output, started together: one of them is refused or both results are whole, never a mixture.

use std::fs;

use calmix_testkit::workspace::folders::{contents, is_same};
use calmix_testkit::workspace::race::one_wins;

use super::fixture::{Fixture, copy_folder};
use crate::program::new_workspace;

#[test]
fn two_trainings_in_one_folder_make_one_run() {
    let workspace = new_workspace().with_garments();
    workspace.end(workspace.training(4, &["--run-dir", "whole"])).with_code(0);
    let whole = contents(&workspace.path("whole"));
    one_wins(
        &workspace,
        || workspace.training(4, &["--run-dir", "run"]),
        &["is using this run", "there is a run here already"],
        || drop(fs::remove_dir_all(workspace.path("run"))),
        |case| is_same(&workspace.path("run"), &whole, case),
    );
}

#[test]
fn two_resumes_of_a_run_end_in_its_bytes() {
    let workspace = Fixture::Garments.copy();
    let whole = contents(&workspace.path("first"));
    let reset = || {
        let _ = fs::remove_dir_all(workspace.path("run"));
        copy_folder(&workspace.path("first"), &workspace.path("run"));
        fs::remove_dir_all(workspace.path("run/checkpoints/step-000000008")).unwrap();
        fs::remove_file(workspace.path("run/result.json")).unwrap();
    };
    one_wins(
        &workspace,
        || workspace.command(&["resume", "run"]),
        &["is using this run"],
        reset,
        |case| {
            let _ = fs::remove_dir_all(workspace.path("run/tensorboard"));
            let whole = whole.iter().filter(|(name, _)| !name.starts_with("tensorboard"));
            is_same(
                &workspace.path("run"),
                &whole.map(|(name, bytes)| (name.clone(), bytes.clone())).collect(),
                case,
            );
        },
    );
}

#[test]
fn concurrent_calibrations_write_one_calibrator() {
    let workspace = Fixture::Photos.copy();
    workspace.images("later/cat", 41, 10);
    workspace.images("later/dog", 201, 10);
    copy_folder(&workspace.path("run"), &workspace.path("before"));
    let calibrate = || workspace.command(&["calibrate", "run", "--on", "later"]);
    // Of two that follow each other, the second keeps what the first wrote.
    let without_previous = || {
        fs::remove_file(workspace.path("run/model.previous.json")).unwrap();
        contents(&workspace.path("run"))
    };
    workspace.end(calibrate()).with_code(0);
    let whole = without_previous();
    let reset = || {
        fs::remove_dir_all(workspace.path("run")).unwrap();
        copy_folder(&workspace.path("before"), &workspace.path("run"));
    };
    one_wins(&workspace, calibrate, &["is using this run"], reset, |case| {
        without_previous();
        is_same(&workspace.path("run"), &whole, case);
    });
}

#[test]
fn weights_added_twice_are_whole() {
    let workspace = Fixture::Weights.copy();
    let whole = contents(&workspace.path("weights"));
    let add = || workspace.command(&["weights", "add", "first/model.safetensors", "--name", "tiny"]);
    let reset = || drop(fs::remove_dir_all(workspace.path("weights")));
    one_wins(&workspace, add, &["tiny"], reset, |case| is_same(&workspace.path("weights"), &whole, case));
}
