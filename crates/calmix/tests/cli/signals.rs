//! Ctrl-C and SIGTERM, with real signals.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use crate::workspace::Workspace;

/// More steps than a run completes before the first signal.
const MANY: u32 = 400;

/// A command that is running.
pub(crate) struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Running {
    pub(crate) fn new(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// Waits until standard error has a line with this.
    pub(crate) fn until(&mut self, part: &str) {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it ended before it printed {part:?}");
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// The rest of its standard error, and its exit code.
    pub(crate) fn stderr(mut self) -> (String, Option<i32>) {
        let mut text = String::new();
        self.stderr.read_to_string(&mut text).unwrap();
        (text, self.child.wait().unwrap().code())
    }

    /// Its standard output, and its exit code.
    pub(crate) fn end(mut self) -> (String, Option<i32>) {
        std::io::copy(&mut self.stderr, &mut std::io::sink()).unwrap();
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        (stdout, self.child.wait().unwrap().code())
    }
}

#[test]
fn a_run_that_is_stopped_says_how_to_go_on_and_does() {
    let workspace = Workspace::new().with_garments();
    let mut running = Running::new(workspace.training(MANY, &["--run-dir", "first"]));
    running.until("step   6/400");
    // Another process gets an error that names this one.
    workspace
        .run(&["resume", "first"])
        .with_code(1)
        .reports(&["process ", "has this run; wait until it ends"]);
    running.signal("INT");
    let (stdout, code) = running.end();
    assert_eq!(code, Some(130), "{stdout}");
    assert!(stdout.starts_with("stopped after "), "{stdout}");
    assert!(stdout.contains(" of 400 steps in first: state saved\n"), "{stdout}");
    assert!(stdout.ends_with("next: calmix resume first\n"), "{stdout}");
    workspace.run(&["inspect", "first"]).with_code(0).prints(&[
        " of 400 steps saved\n",
        "(the run computes intervals and a temperature at its end)",
        "next: calmix resume first\n",
    ]);

    let mut running = Running::new(workspace.command(&["resume", "first"]));
    running.until("/400  loss ");
    running.signal("TERM");
    let (stdout, code) = running.end();
    assert_eq!(code, Some(75), "{stdout}");

    let whole = workspace.run(&["resume", "first", "--quiet"]).with_code(0);
    whole.prints(&["model after 400 steps\n", "next: calmix inspect first\n"]);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let workspace = Workspace::new().with_garments();
    // With so many resamples, the last evaluation takes minutes.
    let more = ["--run-dir", "first", "--set", "evaluate.bootstrap=1000000", "--set", "evaluate.every=100"];
    let mut running = Running::new(workspace.training(2, &more));
    running.until("step 2/2");
    running.signal("INT");
    running.until("stopping after this step; press Ctrl-C again to exit immediately");
    running.signal("INT");
    let (stdout, code) = running.end();
    assert_eq!((stdout.as_str(), code), ("", Some(130)));
    assert!(!workspace.path("first/result.json").exists());
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
    let workspace = Workspace::new().with_garments();
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
