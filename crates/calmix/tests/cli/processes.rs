//! One run in several local processes, with real signals.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::signals::Running;
use crate::workspace::Workspace;

const SHARDS: [&str; 2] = ["--set", "train.shards=4"];

/// Fails unless two runs have the same bytes.
#[track_caller]
fn same(workspace: &Workspace, a: &str, b: &str) {
    for file in ["events.jsonl", "model.safetensors", "result.json", "recipe.toml", "split.json"] {
        let read = |run: &str| fs::read(workspace.path(run).join(file)).unwrap();
        assert!(read(a) == read(b), "{file} of {a} and {b} differ");
    }
}

/// The processes of a run, found by their arguments.
fn workers(run: &Path) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let folder = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        let arguments: Vec<&[u8]> = arguments.split(|&byte| byte == 0).collect();
        let is_ours = Some(folder.as_path()) == run.parent();
        if is_ours && arguments.get(1..3) == Some(&[b"resume", run.file_name().unwrap().as_encoded_bytes()]) {
            found.push(pid);
        }
    }
    found.sort_unstable();
    found
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

#[test]
fn two_and_four_processes_train_what_one_trains() {
    let workspace = Workspace::new().with_garments();
    workspace.end(workspace.training(8, &[&SHARDS[..], &["--run-dir", "one"]].concat())).with_code(0);
    for processes in ["2", "4"] {
        let more = [&SHARDS[..], &["--run-dir", processes, "--processes", processes]].concat();
        let output = workspace.end(workspace.training(8, &more)).with_code(0);
        output.reports(&[&format!("1 thread in each of {processes} processes")]);
        output.prints(&["model after 8 steps\n", &format!("next: calmix inspect {processes}\n")]);
        assert_eq!(output.stdout.matches("model after").count(), 1, "only rank 0 prints");
        same(&workspace, "one", processes);
    }
}

#[test]
fn a_process_that_is_killed_ends_the_others_and_the_run_goes_on() {
    let workspace = Workspace::new().with_garments();
    workspace.end(workspace.training(60, &[&SHARDS[..], &["--run-dir", "whole"]].concat())).with_code(0);
    let more = [&SHARDS[..], &["--run-dir", "run", "--processes", "2"]].concat();
    let mut running = Running::new(workspace.training(60, &more));
    running.until("step 10/60");
    let here = workspace.path("run").canonicalize().unwrap();
    kill(*workers(&here).last().unwrap());
    let (stderr, code) = running.stderr();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains("process 1 of 2 was killed by signal 9; earlier checkpoints are intact"),
        "{stderr}"
    );
    assert!(stderr.contains("try: calmix resume run --processes 2"), "{stderr}");
    // With another number of processes, and stopped by SIGTERM.
    let mut running = Running::new(workspace.command(&["resume", "run", "--processes", "4"]));
    running.until("/60  loss ");
    running.signal("TERM");
    let (stdout, code) = running.end();
    assert_eq!(code, Some(75), "{stdout}");
    workspace.run(&["resume", "run", "--processes", "2", "--quiet"]).with_code(0);
    same(&workspace, "whole", "run");
}

#[test]
fn workers_stop_without_their_supervisor() {
    let workspace = Workspace::new().with_garments();
    let more = [&SHARDS[..], &["--run-dir", "run", "--processes", "2"]].concat();
    let mut running = Running::new(workspace.training(4_000, &more));
    running.until("step     6/4,000");
    let here = workspace.path("run").canonicalize().unwrap();
    assert_eq!(workers(&here).len(), 2);
    running.signal("KILL");
    let began = Instant::now();
    while !workers(&here).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30), "the workers still run");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The workers saved the state.
    workspace.run(&["inspect", "run"]).with_code(0).prints(&[" of 4,000 steps saved\n"]);
}

#[test]
fn variables_of_a_launcher_are_checked() {
    let workspace = Workspace::new().with_garments();
    let with = |variables: &[(&str, &str)], more: &[&str]| {
        let mut command = workspace.training(2, more);
        command.envs(variables.iter().copied());
        workspace.end(command).with_code(2)
    };
    let launch = [("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500")];
    with(&launch, &[]).reports(&["so it needs --run-dir", "try: --run-dir FOLDER"]);
    with(&launch, &["--run-dir", "run", "--processes", "2"])
        .reports(&["as rank 0 of 2", "remove --processes"]);
    with(&[("RANK", "0")], &[]).reports(&["RANK is set, but WORLD_SIZE is not"]);
    with(&[("RANK", "two"), ("WORLD_SIZE", "2")], &[]).reports(&["RANK=two cannot be"]);
    workspace
        .end(workspace.training(2, &["--run-dir", "run", "--set", "train.shards=2", "--processes", "3"]))
        .with_code(1)
        .reports(&["3 processes cannot share 2 shards evenly"]);
}
