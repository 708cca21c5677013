//! What the program was compiled from, as `--version`, `doctor` and a run name it.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::program::new_workspace;

/// The commit that is checked out, if the tests run in a clone and no variable names another one.
fn checked_out() -> Option<String> {
    if std::env::var_os("CALMIX_COMMIT").is_some() {
        return None;
    }
    let mut git = Command::new("git");
    let output = git.current_dir(env!("CARGO_MANIFEST_DIR")).args(["rev-parse", "HEAD"]).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

#[test]
fn calmix_of_another_commit_is_refused() {
    let workspace = new_workspace();
    let mut command = Command::new(env!("CARGO_BIN_EXE_calmix-torch"));
    command.args(["predict", "run", "image.png"]).env("CALMIX_CALLER_COMMIT", "0123");
    workspace.end(command).with_code(2).reports(&[
        "error: calmix (commit 0123) and calmix-torch (commit ",
        ") must be built from the same commit\ntry: in a clone of calmix, ",
    ]);
}

/// It parses and runs every command, under the name of calmix.
#[test]
fn calmix_torch_by_itself_is_calmix() {
    let workspace = new_workspace();
    let run = |argument: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_calmix-torch"));
        command.arg(argument);
        workspace.end(command).with_code(0).stdout
    };
    for argument in ["--help", "-V", "recipes"] {
        assert_eq!(run(argument), workspace.run(&[argument]).with_code(0).stdout);
    }
}

#[test]
fn version_doctor_and_run_name_the_same_commit() {
    let workspace = new_workspace().with_garments();
    let short = workspace.run(&["-V"]).with_code(0).stdout;
    assert_eq!(short, format!("calmix {}\n", env!("CARGO_PKG_VERSION")));

    let long = workspace.run(&["--version"]).with_code(0).stdout;
    let lines: Vec<(&str, &str)> = long.lines().filter_map(|line| line.split_once("  ")).collect();
    let names: Vec<&str> = lines.iter().map(|(name, _)| *name).collect();
    assert!(long.starts_with(&short), "{long}");
    assert_eq!(names, ["commit", "features", "target"], "{long}");
    let commit = lines[0].1.trim();
    if let Some(checked_out) = checked_out() {
        // A build script that does not run again after a commit fails here.
        assert!([checked_out.clone(), checked_out.clone() + "-dirty"].contains(&commit.to_owned()), "{long}");
    }

    let doctor = workspace.run(&["doctor", "--seconds", "0", "--json"]).with_code(0).stdout;
    let doctor: Value = serde_json::from_str(&doctor).unwrap();
    assert_eq!(doctor["commit"], commit);
    assert_eq!(doctor["target"], lines[2].1.trim());

    workspace.end(workspace.training(1, &["--run-dir", "first"])).with_code(0);
    let environment = fs::read_to_string(workspace.path("first/environment.json")).unwrap();
    let environment: Value = serde_json::from_str(&environment).unwrap();
    assert_eq!(environment["commit"], commit);
    assert_eq!(environment["features"], doctor["features"]);
    let short_commit = commit.chars().take(12).collect::<String>();
    workspace.run(&["inspect", "first"]).with_code(0).prints(&[&format!("({short_commit}")]);
}
