//! A run with a single checkpoint, killed at each call that changes its folder: it goes on to the same bytes, and starts
//! anew only if nothing was saved.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use calmix_testkit::tier;
use calmix_testkit::workspace::folders::{contents, is_same};
use calmix_testkit::workspace::{CommandOutput, Workspace};
use calmix_torch::run::read;

use crate::program::new_workspace;

/// The calls that are killed. Without `CALMIX_EXHAUSTIVE=1` only one of several, and the last one.
const CALLS: [(&str, Option<usize>); 10] = [
    ("rename", Some(6)),
    ("renameat", Some(6)),
    ("fsync", Some(20)),
    ("unlink", None),
    ("unlinkat", None),
    ("mkdir", None),
    ("mkdirat", None),
    ("ftruncate", None),
    ("linkat", None),
    ("write", None),
];

/// A training of two steps whose only checkpoint is written at its end, and written again.
fn training(workspace: &Workspace, run: &str) -> Command {
    let rare = ["--set", "checkpoint.every=100", "--set", "evaluate.every=100", "--run-dir", run];
    workspace.training(2, &rare)
}

/// Runs a command under strace, which notes these calls and kills the process at one of them.
fn traced(command: &Command, calls: &str, killed_at: Option<usize>, log: &Path) -> ExitStatus {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", &format!("trace={calls}"), "-o"]).arg(log);
    if let Some(number) = killed_at {
        strace.args(["-e", &format!("inject={calls}:signal=KILL:when={number}")]);
    }
    strace
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap()
}

/// Goes on with a run that was killed.
fn go_on(workspace: &Workspace, run: &str) -> CommandOutput {
    if read::has_begun(&workspace.path(run)) {
        return workspace.run(&["resume", run]);
    }
    workspace.end(training(workspace, run))
}

/// How often one thread calls this. strace counts the calls of each thread apart.
fn count(log: &str, call: &str) -> usize {
    let mut calls: BTreeMap<&str, usize> = BTreeMap::new();
    for line in log.lines().filter(|line| line.contains(&format!(" {call}("))) {
        *calls.entry(line.split(' ').next().unwrap()).or_default() += 1;
    }
    calls.into_values().max().unwrap_or(0)
}

#[test]
fn run_killed_at_any_call_goes_on_to_the_same_bytes() {
    if !Command::new("strace").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return tier::skipped("there is no strace (Debian: strace)");
    }
    let workspace = new_workspace().with_garments();
    let log = workspace.path("calls");
    let all = CALLS.map(|(call, _)| call).join(",");
    traced(&training(&workspace, "whole"), &all, None, &log);
    let whole = contents(&workspace.path("whole"));
    assert!(whole.contains_key(Path::new("result.json")), "strace may not trace here");
    // The runs that follow would share its table, and make fewer calls.
    fs::remove_dir_all(workspace.path("whole")).unwrap();
    let calls = fs::read_to_string(&log).unwrap();
    for (call, usual) in CALLS {
        let count = count(&calls, call);
        assert!(usual.is_none() || count > 0, "no {call}");
        let step = if tier::is_exhaustive() { Some(1) } else { usual };
        for number in step.into_iter().flat_map(|step| (1..=count).rev().step_by(step)) {
            let _ = fs::remove_dir_all(workspace.path("killed"));
            let case = format!("killed at {call} {number} of {count}");
            let status = traced(&training(&workspace, "killed"), call, Some(number), &log);
            assert_eq!(status.signal(), Some(9), "{case}: {status}");
            let is_saved = was_saved(&workspace.path("killed/checkpoints"));
            let said = go_on(&workspace, "killed");
            assert_eq!(said.code, 0, "{case}: {}", said.stderr);
            assert!(!is_saved || !said.stderr.contains("no checkpoint yet"), "{case}: {}", said.stderr);
            is_same(&workspace.path("killed"), &whole, &case);
        }
    }
}

/// Whether a checkpoint was visible when the process was killed: under its name, or being replaced, when there are two under
/// scratch names.
fn was_saved(checkpoints: &Path) -> bool {
    let names = fs::read_dir(checkpoints).into_iter().flatten().flatten();
    let names: Vec<_> = names.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.iter().any(|name| name.starts_with("step-")) || names.len() == 2
}
