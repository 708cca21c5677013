//! One run in several processes of this machine, with real signals.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::desk::Desk;
use crate::signals::Going;

const PARTS: [&str; 2] = ["--set", "train.shards=4"];

/// The results of two runs, which have to be the same bytes.
#[track_caller]
fn same(desk: &Desk, a: &str, b: &str) {
    for file in ["events.jsonl", "model.safetensors", "result.json", "recipe.toml", "split.json"] {
        let read = |run: &str| fs::read(desk.path(run).join(file)).unwrap();
        assert!(read(a) == read(b), "{file} of {a} and {b} differ");
    }
}

/// The processes of a run, which have it in their arguments.
fn members(run: &Path) -> Vec<u32> {
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
    let desk = Desk::new().with_garments();
    desk.end(desk.training(8, &[&PARTS[..], &["--into", "one"]].concat())).with_code(0);
    for processes in ["2", "4"] {
        let more = [&PARTS[..], &["--into", processes, "--processes", processes]].concat();
        let said = desk.end(desk.training(8, &more)).with_code(0);
        said.tells(&[&format!("1 thread in each of {processes} processes")]);
        said.says(&["the model after 8 steps\n", &format!("next: calmix inspect {processes}\n")]);
        assert_eq!(said.stdout.matches("the model after").count(), 1, "one of them tells");
        same(&desk, "one", processes);
    }
}

#[test]
fn a_process_that_is_killed_ends_the_others_and_the_run_goes_on() {
    let desk = Desk::new().with_garments();
    desk.end(desk.training(60, &[&PARTS[..], &["--into", "whole"]].concat())).with_code(0);
    let more = [&PARTS[..], &["--into", "run", "--processes", "2"]].concat();
    let mut going = Going::new(desk.training(60, &more));
    going.until("step 10/60");
    let here = desk.path("run").canonicalize().unwrap();
    kill(*members(&here).last().unwrap());
    let (told, code) = going.told();
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("process 1 of 2 was killed by signal 9; what was kept before is intact"), "{told}");
    assert!(told.contains("try: calmix resume run --processes 2"), "{told}");
    // On another number of processes, told to stop on the way.
    let mut going = Going::new(desk.command(&["resume", "run", "--processes", "4"]));
    going.until("/60  loss ");
    going.signal("TERM");
    let (stdout, code) = going.end();
    assert_eq!(code, Some(75), "{stdout}");
    desk.run(&["resume", "run", "--processes", "2", "--quiet"]).with_code(0);
    same(&desk, "whole", "run");
}

#[test]
fn nobody_is_left_behind() {
    let desk = Desk::new().with_garments();
    let more = [&PARTS[..], &["--into", "run", "--processes", "2"]].concat();
    let mut going = Going::new(desk.training(4_000, &more));
    going.until("step     6/4,000");
    let here = desk.path("run").canonicalize().unwrap();
    assert_eq!(members(&here).len(), 2);
    going.signal("KILL");
    let began = Instant::now();
    while !members(&here).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30), "they go on without anybody");
        std::thread::sleep(Duration::from_millis(20));
    }
    // They had time to keep what they had learnt.
    desk.run(&["inspect", "run"]).with_code(0).says(&[" of 4,000 steps are kept\n"]);
}

#[test]
fn what_a_launcher_says_has_to_make_sense() {
    let desk = Desk::new().with_garments();
    let with = |variables: &[(&str, &str)], more: &[&str]| {
        let mut command = desk.training(2, more);
        command.envs(variables.iter().copied());
        desk.end(command).with_code(2)
    };
    let place = [("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500")];
    with(&place, &[]).tells(&["it has to know the folder of the run", "try: --into FOLDER"]);
    with(&place, &["--into", "run", "--processes", "2"])
        .tells(&["already process 0 of 2", "leave --processes out"]);
    with(&[("RANK", "0")], &[]).tells(&["RANK is set, but WORLD_SIZE is not"]);
    with(&[("RANK", "two"), ("WORLD_SIZE", "2")], &[]).tells(&["RANK=two cannot be"]);
    desk.end(desk.training(2, &["--into", "run", "--set", "train.shards=2", "--processes", "3"]))
        .with_code(1)
        .tells(&["3 processes cannot share 2 shards evenly"]);
}
