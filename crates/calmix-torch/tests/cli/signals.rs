//! Every way in which users end a run, with real signals and pipes.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use calmix_testkit::tier;
use calmix_testkit::workspace::Workspace;
use calmix_testkit::workspace::running::Running;

use super::fixture::Fixture;
use crate::program::new_workspace;

/// More steps than a run completes before the first signal.
const MANY: u32 = 400;

#[test]
fn stopped_run_names_its_resume_command() {
    let workspace = new_workspace().with_garments();
    let mut running = Running::new(workspace.training(MANY, &["--run-dir", "first"]));
    running.until("step   6/400");
    // Another process gets an error that names this one.
    workspace
        .run(&["resume", "first"])
        .with_code(1)
        .reports(&["process ", "is using this run; wait until it ends"]);
    running.signal("INT");
    let (stdout, code) = running.end();
    assert_eq!(code, Some(130), "{stdout}");
    assert!(stdout.starts_with("stopped after "), "{stdout}");
    assert!(stdout.contains(" of 400 steps in first: state saved\n"), "{stdout}");
    assert!(stdout.ends_with("next: calmix resume first\n"), "{stdout}");
    workspace.run(&["inspect", "first"]).with_code(0).prints(&[
        " of 400 steps saved\n",
        "confidence intervals and a temperature are computed at the end of the run\n",
        "next: calmix resume first\n",
    ]);

    let mut running = Running::new(workspace.command(&["resume", "first"]));
    running.until("/400  loss ");
    running.signal("TERM");
    let (stdout, code) = running.end();
    assert_eq!(code, Some(75), "{stdout}");

    let whole = workspace.run(&["resume", "first", "--quiet"]).with_code(0);
    whole.prints(&["model after 400 steps written to first; ", "next: calmix report first\n"]);
}

/// On a file system whose locks do not reach other machines, the text of the lock is what they go by.
#[test]
fn run_of_another_machine_is_taken_over_on_request() {
    let workspace = Fixture::Garments.copy();
    let lock = workspace.path("first/calmix.lock");
    assert_eq!(fs::read_to_string(&lock).unwrap(), "", "the run was closed");
    let text = "process 7 on elsewhere\nboot 01234567-89ab-cdef-0123-456789abcdef\n";
    fs::write(&lock, text).unwrap();
    let refused = workspace.run(&["resume", "first"]).with_code(1);
    refused.reports(&["first/calmix.lock: process 7 on elsewhere, another machine, has not closed this run"]);
    refused.reports(&["make sure that the process has ended, then add `--take-over`"]);
    assert_eq!(fs::read_to_string(&lock).unwrap(), text);
    workspace.run(&["resume", "first", "--take-over"]).with_code(0).prints(&["already finished"]);
    workspace.run(&["resume", "first"]).with_code(0);
}

/// A run in its last evaluation, which takes minutes because it has so many bootstrap resamples.
fn finishing(workspace: &Workspace, run: &str) -> Running {
    let more = ["--run-dir", run, "--set", "evaluate.bootstrap=1000000", "--set", "evaluate.every=100"];
    let mut running = Running::new(workspace.training(2, &more));
    running.until("step 2/2");
    running
}

/// SIGTERM is heard in the last evaluation and its bootstrap, and the run can be resumed there.
#[test]
fn the_last_evaluation_hears_sigterm_at_once() {
    let workspace = new_workspace().with_garments();
    let running = finishing(&workspace, "first");
    let sent = Instant::now();
    running.signal("TERM");
    let (stdout, code) = running.end();
    assert_eq!(code, Some(75), "{stdout}");
    assert!(stdout.contains("stopped after 2 of 2 steps in first: state saved\n"), "{stdout}");
    assert!(sent.elapsed() < Duration::from_secs(10), "after {:?}", sent.elapsed());
    // It takes up the evaluation, and hears of a stop again.
    let mut running = Running::new(workspace.command(&["resume", "first"]));
    running.until("resuming first");
    std::thread::sleep(Duration::from_secs(1));
    running.signal("INT");
    assert_eq!(running.end().1, Some(130));
}

#[test]
fn second_ctrl_c_ends_without_saving() {
    let workspace = new_workspace().with_garments();
    // A step that takes long: the first Ctrl-C has to wait for it.
    let more = ["--run-dir", "first", "--set", "train.batch=2000", "--set", "train.ratio=7"];
    let mut running = Running::new(workspace.training(2, &more));
    running.until("run       first");
    std::thread::sleep(Duration::from_millis(1_500));
    running.signal("INT");
    running.until("press Ctrl-C again to exit at once without saving");
    running.signal("INT");
    let (stdout, code) = running.end();
    assert_eq!((stdout.as_str(), code), ("", Some(131)));
}

#[test]
fn a_second_sigterm_changes_nothing() {
    let workspace = new_workspace().with_garments();
    let mut running = Running::new(workspace.training(MANY, &["--run-dir", "first"]));
    running.until("step   6/400");
    for _ in 0..20 {
        running.signal("TERM");
        std::thread::sleep(Duration::from_millis(2));
    }
    let (stdout, code) = running.end();
    assert_eq!(code, Some(75), "{stdout}");
    assert!(stdout.contains(" of 400 steps in first: state saved\n"), "{stdout}");
}

#[test]
fn a_closed_lid_and_slurms_signal_stop_a_run_as_sigterm_does() {
    let workspace = new_workspace().with_garments();
    for name in ["HUP", "USR1"] {
        let mut running = Running::new(workspace.training(MANY, &["--run-dir", name]));
        running.until("step   6/400");
        running.signal(name);
        let (stdout, code) = running.end();
        assert_eq!(code, Some(75), "{name}: {stdout}");
        assert!(stdout.contains(": state saved\n"), "{name}: {stdout}");
    }
}

/// `nohup` ignores SIGHUP, so that a run outlives its terminal; it must stay ignored.
#[test]
fn nohup_keeps_a_run_alive() {
    let workspace = new_workspace().with_garments();
    let calmix = workspace.training(8, &["--run-dir", "first"]);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(calmix.get_program());
    command.args(calmix.get_args()).current_dir(workspace.path("."));
    let mut running = Running::new(command);
    running.until("step 2/8");
    running.signal("HUP");
    let (stdout, code) = running.end();
    assert_eq!(code, Some(0), "{stdout}");
}

/// `| head`, a `tee` that dies, a full disk behind a log: no process reads the output any more, and the run continues.
#[test]
fn run_survives_a_closed_terminal_or_pipe() {
    let workspace = new_workspace().with_garments();
    workspace.end(workspace.training(40, &["--run-dir", "whole"])).with_code(0);
    let mut running = Running::new(workspace.training(40, &["--run-dir", "pipe"]));
    running.until("step  2/40");
    let Running { mut child, stderr } = running;
    drop((stderr, child.stdout.take()));
    assert_eq!(child.wait().unwrap().code(), Some(0), "with closed pipes");
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let mut command = workspace.training(40, &["--run-dir", "full"]);
    assert_eq!(command.stdout(full()).stderr(full()).status().unwrap().code(), Some(0), "with /dev/full");
    for run in ["pipe", "full"] {
        for file in ["events.jsonl", "model.safetensors", "result.json"] {
            let read = |run: &str| fs::read(workspace.path(run).join(file)).unwrap();
            assert!(read("whole") == read(run), "{file} of {run}");
        }
    }
    // The exit code of a stopped run is the same, whether or not its output can be written.
    let mut running = Running::new(workspace.training(MANY, &["--run-dir", "stopped"]));
    running.until("step   6/400");
    drop(running.child.stdout.take());
    running.signal("TERM");
    assert_eq!(running.stderr().1, Some(75));
}

/// Replaces the garments by sparse files with so many black images that a signal arrives during the scan.
fn grow(workspace: &Workspace) {
    const COUNT: u32 = 1 << 28;
    for (name, sides) in [("images-idx3", &[COUNT, 8, 8][..]), ("labels-idx1", &[COUNT])] {
        let mut file = File::create(workspace.path(&format!("garments/train-{name}-ubyte"))).unwrap();
        let header: Vec<u8> = sides.iter().flat_map(|side| side.to_be_bytes()).collect();
        file.write_all(&[0, 0, 8, sides.len() as u8]).unwrap();
        file.write_all(&header).unwrap();
        let values: u64 = sides.iter().map(|&side| u64::from(side)).product();
        file.set_len(4 + header.len() as u64 + values).unwrap();
    }
}

/// Whether a table is being written below `folder`.
fn is_being_written(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name() == "samples.bin" || is_being_written(&entry.path()))
}

#[test]
fn preparing_ends_at_the_first_signal_and_leaves_nothing() {
    let workspace = new_workspace().with_garments();
    grow(&workspace);
    let prepare = ["prepare", "garments", "--source", "fashion-mnist"];
    for (command, name) in [
        (workspace.command(&prepare), "INT"),
        (workspace.training(8, &[]), "INT"),
        (workspace.training(8, &["--run-dir", "first"]), "TERM"),
    ] {
        let mut running = Running::new(command);
        running.until("reading ");
        while !is_being_written(&workspace.path(".")) {
            assert!(running.child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::sleep(Duration::from_millis(5));
        }
        running.signal(name);
        assert_eq!(running.end(), (String::new(), Some(130)));
        let left: Vec<_> =
            fs::read_dir(workspace.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["garments"]);
    }
    // The next command works.
    fs::remove_dir_all(workspace.path("garments")).unwrap();
    let workspace = workspace.with_garments();
    workspace.run(&prepare).with_code(0);
}

/// A rank that waits for the others has nothing to save, and ends.
#[test]
fn waiting_for_a_rank_hears_sigterm() {
    let workspace = new_workspace().with_garments();
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut command = workspace.training(4, &["--run-dir", "run", "--set", "train.micro_batches=2"]);
    command.envs([("RANK", "0"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "0"), ("LOCAL_WORLD_SIZE", "2")]);
    command.envs([("MASTER_ADDR", "127.0.0.1".to_owned()), ("MASTER_PORT", port.to_string())]);
    let running = Running::new(command);
    // It waits once its port is open.
    let deadline = Instant::now() + Duration::from_mins(1);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "it does not wait for the other rank");
        std::thread::sleep(Duration::from_millis(20));
    }
    let sent = Instant::now();
    running.signal("TERM");
    let (stderr, code) = running.stderr();
    assert!(sent.elapsed() < Duration::from_secs(10), "after {:?}: {stderr}", sent.elapsed());
    assert_eq!(code, Some(75), "{stderr}");
}

/// A disk that takes 0.2 s for each file: the checkpoint in progress is completed, and the run resumes from it.
#[cfg(target_os = "linux")]
#[test]
fn writing_a_checkpoint_hears_sigterm() {
    if !Command::new("strace").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return tier::skipped("there is no strace (Debian: strace)");
    }
    let workspace = new_workspace().with_garments();
    let calmix = workspace.training(MANY, &["--run-dir", "first"]);
    let mut command = Command::new("strace");
    // As a process beside it, so that the signal goes to calmix.
    command.args(["-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync"]);
    command.args(["-e", "inject=fsync:delay_enter=200000"]).arg(calmix.get_program()).args(calmix.get_args());
    let running = Running::new({
        command.current_dir(workspace.path("."));
        command
    });
    let is_writing = || {
        let names = fs::read_dir(workspace.path("first/checkpoints")).into_iter().flatten().flatten();
        names.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(".step-"))
    };
    let deadline = Instant::now() + Duration::from_mins(1);
    while !is_writing() {
        assert!(Instant::now() < deadline, "no checkpoint is written");
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Instant::now();
    running.signal("TERM");
    let (stdout, code) = running.end();
    assert_eq!(code, Some(75), "{stdout}");
    let took = sent.elapsed();
    assert!(took > Duration::from_millis(200) && took < Duration::from_secs(10), "after {took:?}");
    assert!(stdout.contains(": state saved\n"), "{stdout}");
    workspace.run(&["inspect", "first"]).with_code(0).prints(&[" of 400 steps saved\n"]);
}
