//! Two processes with one output, started together: one of them is refused or both results are whole, never a mixture.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use calmix_testkit::tier;

use super::fixture::{Fixture, copy_folder, files};
use crate::workspace::{CommandOutput, Workspace};

/// Everything below a folder but what depends on the clock.
pub(crate) fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let is_timed = |name: &PathBuf| {
        ["calmix.lock", "timing.jsonl", "prepared/source.json"].iter().any(|timed| name.ends_with(timed))
    };
    let names = files(folder).into_iter().filter(|name| !is_timed(name));
    names.map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect()
}

/// Fails if two folders have other files, or files with other bytes.
#[track_caller]
pub(crate) fn is_same(found: &Path, expected: &BTreeMap<PathBuf, Vec<u8>>, case: &str) {
    let found = contents(found);
    let names = |all: &BTreeMap<PathBuf, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(expected), "{case}");
    for (name, bytes) in expected {
        assert!(&found[name] == bytes, "{case}: {}", name.display());
    }
}

/// Runs a command twice at the same time.
fn twice(workspace: &Workspace, command: &(impl Fn() -> Command + Sync)) -> [CommandOutput; 2] {
    thread::scope(|scope| {
        let started = [0, 1].map(|_| scope.spawn(|| workspace.end(command())));
        started.map(|process| process.join().unwrap())
    })
}

/// Runs a command twice at the same time, in a few rounds. At least one succeeds; the other one does, too, or is refused with
/// one of these sentences. `reset` comes before and `holds` after each round.
#[track_caller]
fn one_wins(
    workspace: &Workspace,
    command: impl Fn() -> Command + Sync,
    refusals: &[&str],
    reset: impl Fn(),
    holds: impl Fn(&str),
) {
    for round in 0..tier::number("CALMIX_ROUNDS", 1, 10) {
        reset();
        let ended = twice(workspace, &command);
        let said = ended.each_ref().map(|one| format!("exit {}: {}", one.code, one.stderr)).join("\n");
        let case = format!("round {round}\n{said}");
        assert!(ended.iter().any(|one| one.code == 0), "{case}");
        for lost in ended.iter().filter(|one| one.code != 0) {
            assert!(refusals.iter().any(|refusal| lost.stderr.contains(refusal)), "{case}");
        }
        holds(&case);
    }
}

#[test]
fn two_trainings_in_one_folder_make_one_run() {
    let workspace = Workspace::new().with_garments();
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
fn two_preparations_write_one_table() {
    let workspace = Workspace::new().with_photos();
    workspace.run(&["prepare", "photos", "--to", "whole"]).with_code(0);
    let whole = contents(&workspace.path("whole"));
    one_wins(
        &workspace,
        || workspace.command(&["prepare", "photos", "--to", "table"]),
        &["table"],
        || drop(fs::remove_dir_all(workspace.path("table"))),
        |case| is_same(&workspace.path("table"), &whole, case),
    );
}

#[test]
fn two_reports_on_one_page_are_whole() {
    let workspace = Fixture::Garments.copy();
    let made = || {
        let page = fs::read(workspace.path("page.html")).unwrap();
        let data = fs::read(workspace.path("page.json")).unwrap();
        (page, data, contents(&workspace.path("page")))
    };
    let report = || workspace.command(&["report", "first", "--output", "page.html"]);
    workspace.end(report()).with_code(0);
    let whole = made();
    let reset = || {
        fs::remove_file(workspace.path("page.html")).unwrap();
        fs::remove_file(workspace.path("page.json")).unwrap();
        fs::remove_dir_all(workspace.path("page")).unwrap();
    };
    one_wins(&workspace, report, &["page"], reset, |case| assert!(made() == whole, "{case}"));
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
