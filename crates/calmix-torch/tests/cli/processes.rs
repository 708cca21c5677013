//! One run in several local processes, with real signals.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use calmix_testkit::workspace::running::Running;
use calmix_testkit::workspace::{TINY, Workspace};

use crate::program::new_workspace;

const MICRO_BATCHES: [&str; 2] = ["--set", "train.micro_batches=4"];

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
    let workspace = new_workspace().with_garments();
    workspace.end(workspace.training(8, &[&MICRO_BATCHES[..], &["--run-dir", "one"]].concat())).with_code(0);
    for processes in ["2", "4"] {
        let more = [&MICRO_BATCHES[..], &["--run-dir", processes, "--processes", processes]].concat();
        let output = workspace.end(workspace.training(8, &more)).with_code(0);
        output.reports(&[&format!("1 thread in each of {processes} processes")]);
        output.prints(&["model after 8 steps written to ", &format!("next: calmix report {processes}\n")]);
        assert_eq!(output.stdout.matches("model after").count(), 1, "only rank 0 prints");
        same(&workspace, "one", processes);
    }
}

#[test]
fn killed_process_ends_the_others_and_resumes() {
    let workspace = new_workspace().with_garments();
    workspace
        .end(workspace.training(60, &[&MICRO_BATCHES[..], &["--run-dir", "whole"]].concat()))
        .with_code(0);
    let more = [&MICRO_BATCHES[..], &["--run-dir", "run", "--processes", "2"]].concat();
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
    // Of Gloo's words what happened, without its source, its advice and its wishes.
    assert!(!stderr.contains("GLHF") && !stderr.contains("pair.cc"), "{stderr}");
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
    let workspace = new_workspace().with_garments();
    let more = [&MICRO_BATCHES[..], &["--run-dir", "run", "--processes", "2"]].concat();
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
    let workspace = new_workspace().with_garments();
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
    with(&[("RANK", "two"), ("WORLD_SIZE", "2")], &[]).reports(&["RANK=two is invalid"]);
    workspace
        .end(
            workspace
                .training(2, &["--run-dir", "run", "--set", "train.micro_batches=2", "--processes", "3"]),
        )
        .with_code(2)
        .reports(&["3 processes cannot share 2 micro-batches"]);
}

/// All processes of a launcher end with the same code: what one of them finds is a mistake for all.
#[test]
fn a_mistake_is_one_on_every_rank() {
    let workspace = new_workspace().with_garments();
    let port =
        std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port().to_string();
    let start = |rank: &str| {
        let more = ["--run-dir", "run", "--set", "train.micro_batches=1", "--set", "train.timeout=60"];
        let mut command = workspace.training(2, &more);
        command.envs([("RANK", rank), ("WORLD_SIZE", "2"), ("LOCAL_RANK", rank), ("LOCAL_WORLD_SIZE", "2")]);
        command.envs([("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &*port)]);
        Running::new(command)
    };
    let (first, second) = (start("0"), start("1"));
    for running in [first, second] {
        let (stderr, code) = running.stderr();
        assert!(stderr.contains("2 processes cannot share 1 micro-batch"), "{stderr}");
        assert_eq!(code, Some(2), "{stderr}");
    }
}

#[test]
fn resumed_run_shows_its_step() {
    let workspace = new_workspace().with_garments();
    let more = [&MICRO_BATCHES[..], &["--run-dir", "run", "--processes", "2"]].concat();
    let mut running = Running::new(workspace.training(4_000, &more));
    running.until("step     6/4,000");
    running.signal("TERM");
    let (stdout, code) = running.end();
    assert_eq!(code, Some(75), "{stdout}");
    assert!(stdout.ends_with("next: calmix resume run --processes 2\n"), "{stdout}");
    let step = stdout.strip_prefix("stopped after ").and_then(|rest| rest.split(' ').next()).unwrap();
    workspace
        .run(&["inspect", "run"])
        .with_code(0)
        .prints(&[&format!("resumes   after step {step}, with step ")]);

    // With the same processes, then on one, then by a launcher that starts the command of the beginning again.
    let goes_on = |mut running: Running, step: &str| -> String {
        running.until(&format!("continuing after {step} of 4,000 steps\n"));
        running.until("/4,000  loss ");
        running.signal("INT");
        let (stdout, code) = running.end();
        assert_eq!(code, Some(130), "{stdout}");
        stdout
    };
    let after = |stdout: &str| {
        stdout.strip_prefix("stopped after ").and_then(|rest| rest.split(' ').next()).unwrap().to_owned()
    };
    let stdout = goes_on(Running::new(workspace.command(&["resume", "run", "--processes", "2"])), step);
    assert!(stdout.ends_with("next: calmix resume run --processes 2\n"), "{stdout}");
    let stdout = goes_on(Running::new(workspace.command(&["resume", "run"])), &after(&stdout));
    assert!(stdout.ends_with("next: calmix resume run\n"), "{stdout}");
    let mut command = workspace.training(4_000, &[&MICRO_BATCHES[..], &["--run-dir", "run"]].concat());
    command.envs([
        ("RANK", "0"),
        ("WORLD_SIZE", "1"),
        ("MASTER_ADDR", "127.0.0.1"),
        ("MASTER_PORT", "29511"),
    ]);
    let stdout = goes_on(Running::new(command), &after(&stdout));
    assert!(
        stdout.ends_with("next: start the same command with the same launcher to resume run\n"),
        "{stdout}"
    );
}

/// The advice is about the option that would help.
#[test]
fn threads_of_several_processes_are_counted() {
    let workspace = new_workspace().with_garments();
    let cores_free = std::thread::available_parallelism().unwrap().get();
    let (threads, each) = (cores_free.max(2), (cores_free / 2).max(1));
    let mut command =
        workspace.command(&["train", "cpu-fashion-mnist", "--data", "garments", "--processes", "2"]);
    command.args([
        "--threads",
        &threads.to_string(),
        "--set",
        "train.micro_batches=2",
        "--set",
        "train.steps=1",
    ]);
    for setting in TINY {
        command.args(["--set", setting]);
    }
    let output = workspace.end(command).with_code(0);
    let cores = if cores_free == 1 { "1 core".to_owned() } else { format!("{cores_free} cores") };
    let better =
        if cores_free == 1 { "1 process of 1 thread".to_owned() } else { format!("--threads {each}") };
    output.reports(&[&format!(
        "warning: 2 processes of {threads} threads on {cores}: much slower than {better}\n"
    )]);
}
