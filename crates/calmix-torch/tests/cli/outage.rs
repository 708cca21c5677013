//! A filer that fails and then hangs, under the dataset and under the run's folder: a file system in user space, with a
//! switch. Needs Linux with /dev/fuse, libfuse2 and Python with fusepy (`CALMIX_FUSE_PYTHON` names it, otherwise
//! `python3`); elsewhere the tests are skipped.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use calmix_testkit::tier;
use calmix_testkit::workspace::running::Running;
use calmix_testkit::workspace::{TINY, Workspace};

use crate::program::new_workspace;

/// Seconds of EIO: long enough that a person hears of it.
const FAILS: Duration = Duration::from_secs(8);

/// A mounted filer, with the folder that it shows.
struct Filer {
    server: Child,
    at: PathBuf,
    switch: PathBuf,
}

impl Filer {
    /// Shows `real` at `at`; nothing where there is no FUSE.
    fn mount(real: &Path, at: &Path) -> Option<Self> {
        let python = std::env::var("CALMIX_FUSE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let quiet = |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let has_fuse = quiet(Command::new(&python).args(["-c", "import fuse"])).is_ok_and(|it| it.success());
        if !has_fuse || !Path::new("/dev/fuse").exists() {
            tier::skipped(&format!("{python} has no fusepy, or this system no /dev/fuse"));
            return None;
        }
        let switch = at.with_extension("switch");
        fs::write(&switch, "ok").unwrap();
        fs::create_dir_all(real).unwrap();
        fs::create_dir_all(at).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/outage/passthrough.py");
        let mut command = Command::new(python);
        let server = command.arg(script).args([real, at, &switch]).stderr(Stdio::null()).spawn().unwrap();
        let mut filer = Self { server, at: at.to_owned(), switch };
        let began = Instant::now();
        while !is_mounted(at) {
            if filer.server.try_wait().unwrap().is_some() || began.elapsed() > Duration::from_secs(20) {
                tier::skipped("FUSE cannot be mounted");
                return None;
            }
            sleep(Duration::from_millis(20));
        }
        Some(filer)
    }

    fn becomes(&self, word: &str) {
        // In one piece: the server reads it at any moment.
        let next = self.switch.with_extension("next");
        fs::write(&next, word).unwrap();
        fs::rename(next, &self.switch).unwrap();
    }
}

impl Drop for Filer {
    fn drop(&mut self) {
        self.becomes("ok");
        let _ = Command::new("fusermount").args(["-uz".as_ref(), self.at.as_os_str()]).status();
        let _ = self.server.wait();
    }
}

fn is_mounted(at: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(1) == at.to_str())
}

/// A training of 60 steps on photos, each in a file of its own.
fn training(workspace: &Workspace, data: &str, run: &str) -> Command {
    let mut command =
        workspace.command(&["train", "cpu-folder", "--threads", "1", "--data", data, "--run-dir", run]);
    let more =
        ["train.steps=60", "loader.memory=0", "loader.workers=2", "checkpoint.every=3", "evaluate.every=20"];
    for setting in TINY.iter().chain(&more) {
        command.args(["--set", setting]);
    }
    command
}

/// Runs a training while the filer fails for a while and then hangs; what it said.
fn through_outage(filer: &Filer, command: Command) -> String {
    let mut running = Running::new(command);
    let mut said = running.until("step  8/60");
    filer.becomes("eio");
    sleep(FAILS);
    filer.becomes("ok");
    said += &running.until("step 24/60");
    filer.becomes("hang");
    sleep(Duration::from_secs(if tier::is_exhaustive() { 30 } else { 12 }));
    filer.becomes("ok");
    let (rest, code) = running.stderr();
    assert_eq!(code, Some(0), "{said}{rest}");
    said + &rest
}

/// Fails unless two runs have the same bytes.
#[track_caller]
fn same(a: &Path, b: &Path) {
    for file in ["events.jsonl", "model.safetensors", "result.json", "recipe.toml", "split.json"] {
        assert!(fs::read(a.join(file)).unwrap() == fs::read(b.join(file)).unwrap(), "{file}");
    }
}

#[test]
fn a_dataset_that_is_away_for_a_while_is_waited_for() {
    let workspace = new_workspace().with_photos();
    let Some(filer) = Filer::mount(&workspace.path("photos"), &workspace.path("filer")) else { return };
    workspace.end(training(&workspace, "filer", "whole")).with_code(0);
    let said = through_outage(&filer, training(&workspace, "filer", "run"));
    assert!(said.contains("Input/output error") && said.contains("waiting for the storage"), "{said}");
    assert!(said.contains("the storage is available again"), "{said}");
    assert!(said.contains("no sample was loaded for 10 s"), "{said}");
    same(&workspace.path("whole"), &workspace.path("run"));
}

#[test]
fn a_run_folder_that_is_away_for_a_while_is_waited_for() {
    let workspace = new_workspace().with_photos();
    let Some(filer) = Filer::mount(&workspace.path("disk"), &workspace.path("filer")) else { return };
    workspace.end(training(&workspace, "photos", "filer/whole")).with_code(0);
    let said = through_outage(&filer, training(&workspace, "photos", "filer/run"));
    assert!(said.contains("Input/output error") && said.contains("waiting for the storage"), "{said}");
    same(&workspace.path("disk/whole"), &workspace.path("disk/run"));
}
