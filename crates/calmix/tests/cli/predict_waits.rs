//! `calmix predict` that waits, beside another one that writes the same output.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::fixture::Fixture;
use crate::predict::predict;
use crate::workspace::Workspace;

/// No stop may take longer.
const LONGEST: Duration = Duration::from_secs(5);

/// A `predict` that waits for more paths. Dropped, it is killed: a test that fails leaves no process behind.
struct Waiting(Child);

impl Waiting {
    /// Starts it with these paths on its standard input, and waits until `file` has so many lines.
    fn start(workspace: &Workspace, arguments: &[&str], paths: &str, file: &str, lines: usize) -> Self {
        let mut command = workspace.command(&[&["predict", "run", "--threads", "1"], arguments].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut waiting = Self(command.spawn().unwrap());
        waiting.0.stdin.as_mut().unwrap().write_all(paths.as_bytes()).unwrap();
        while !fs::read_to_string(workspace.path(file)).is_ok_and(|text| text.lines().count() >= lines) {
            assert!(waiting.0.try_wait().unwrap().is_none(), "it ended by itself");
            thread::sleep(Duration::from_millis(5));
        }
        waiting
    }

    /// Its exit code, if it ends in time.
    #[track_caller]
    fn code(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(begun.elapsed() < LONGEST, "it goes on after {:?}", begun.elapsed());
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Paths of images, one a line.
fn paths(count: usize) -> String {
    (0..count).map(|n| format!("photos/dog/{}.png\n", n % 10)).collect()
}

/// A requeued job starts while the first still writes: the rows of one of them are in the file, each once.
#[test]
fn output_has_one_writer() {
    let workspace = Fixture::Photos.copy();
    for out in ["out.csv", "out.jsonl", "out.parquet"] {
        let arguments = ["-", "--out", out];
        let mut first = Waiting::start(&workspace, &arguments, &paths(3), &format!("{out}.predict.json"), 1);
        let before = workspace.names(".");
        let note = fs::read(workspace.path(&format!("{out}.predict.json"))).unwrap();
        // Whatever its options are, it is told who is at work, not that they differ.
        let second = predict(&workspace, &["photos", "--out", out, "--resume"]).with_code(1);
        second.reports(&[out, "another `calmix predict` is writing it", "wait until it ends"]);
        predict(&workspace, &["photos", "--out", out]).with_code(2).reports(&[out, "already exists"]);
        assert_eq!(workspace.names("."), before);
        assert_eq!(fs::read(workspace.path(&format!("{out}.predict.json"))).unwrap(), note);
        drop(first.0.stdin.take());
        assert_eq!(first.code(), Some(0));
        // Now it is free.
        let resume = ["photos", "--out", out, "--resume"];
        predict(&workspace, &resume).with_code(2).reports(&["it was made with paths"]);
    }
    assert_eq!(fs::read_to_string(workspace.path("out.csv")).unwrap().lines().count(), 1 + 3);
    assert_eq!(fs::read_to_string(workspace.path("out.jsonl")).unwrap().lines().count(), 3);
}

/// A kill can come after an output was made and before its note was.
#[test]
fn output_without_rows_is_started_again() {
    let workspace = Fixture::Photos.copy();
    fs::write(workspace.path("out.csv"), "").unwrap();
    let resume = ["photos", "--out", "out.csv", "--resume"];
    predict(&workspace, &resume).with_code(0).reports(&["33 images, "]);
    predict(&workspace, &resume).with_code(0).reports(&["0 images after 33 of before"]);
}
