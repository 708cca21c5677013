//! `calmix predict` that waits: for paths that do not come, beside another one that writes the same output.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use calmix_testkit::workspace::Workspace;

use super::fixture::Fixture;
use super::predict::predict;

/// No stop may take longer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A `predict` that waits for more paths. Dropped, it is killed: a test that fails leaves no process behind.
struct Waiting(Child);

impl Waiting {
    /// Starts it with these paths on its standard input, and waits until `file` has `lines` lines.
    fn start(workspace: &Workspace, arguments: &[&str], paths: &str, file: &str, lines: usize) -> Self {
        let mut command = workspace.command(&[&["predict", "run", "--threads", "1"], arguments].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut waiting = Self(command.spawn().unwrap());
        waiting.0.stdin.as_mut().unwrap().write_all(paths.as_bytes()).unwrap();
        while !fs::read_to_string(workspace.path(file)).is_ok_and(|text| text.lines().count() >= lines) {
            assert!(waiting.0.try_wait().unwrap().is_none(), "it ended by itself");
            thread::sleep(Duration::from_millis(5));
        }
        waiting
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.0.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Whether it has begun, and computes nothing for two seconds.
    fn is_idle(&mut self) -> bool {
        assert!(self.0.try_wait().unwrap().is_none(), "it ended by itself");
        let ticks = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
            let fields = stat.rsplit(')').next().unwrap().split_whitespace();
            fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>()
        };
        let before = ticks();
        thread::sleep(Duration::from_secs(2));
        ticks() == before && before > 5
    }

    /// Its exit code, if it ends in time.
    #[track_caller]
    fn code(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(begun.elapsed() < TIMEOUT, "it goes on after {:?}", begun.elapsed());
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
    (0..count).map(|n| format!("photos/dog/{}.png\n", n % 10)).collect::<Vec<_>>().concat()
}

/// A requeued job starts while the first still writes: the rows of one of them are in the file, each once.
#[test]
fn output_has_one_writer() {
    let workspace = Fixture::Photos.copy();
    for out in ["out.csv", "out.jsonl", "out.parquet"] {
        let arguments = ["-", "--out", out];
        let mut first = Waiting::start(&workspace, &arguments, &paths(3), &format!("{out}.predict.json"), 1);
        while !workspace.path(out).exists() {
            thread::sleep(Duration::from_millis(5));
        }
        let before = workspace.names(".");
        let note = fs::read(workspace.path(&format!("{out}.predict.json"))).unwrap();
        // Whatever its options are, the error names the other writer, not a difference in options.
        let second = predict(&workspace, &["photos", "--out", out, "--resume"]).with_code(1);
        second.reports(&[out, "another `calmix predict` is writing it", "wait until it ends"]);
        predict(&workspace, &["photos", "--out", out]).with_code(2).reports(&[out, "already exists"]);
        assert_eq!(workspace.names("."), before);
        assert_eq!(fs::read(workspace.path(&format!("{out}.predict.json"))).unwrap(), note);
        // Closes its standard input.
        assert!(first.0.wait().unwrap().success());
        // Now it is free.
        let resume = ["photos", "--out", out, "--resume"];
        predict(&workspace, &resume).with_code(2).reports(&["it was written with paths"]);
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
    predict(&workspace, &resume).with_code(0).reports(&["0 images in addition to 33 from before"]);
}

/// Of 40 paths two chunks of 16 are there, and the last batch of the second waits for the next one.
#[test]
fn waiting_for_paths_hears_every_signal() {
    let workspace = Fixture::Photos.copy();
    fs::write(workspace.path("list"), paths(40)).unwrap();
    predict(&workspace, &["--list", "list", "--out", "whole.csv"]).with_code(0);
    let whole = fs::read_to_string(workspace.path("whole.csv")).unwrap();
    for (signal, code) in [("TERM", 75), ("HUP", 75), ("INT", 130)] {
        let out = format!("{signal}.csv");
        let arguments = ["-", "--batch", "1", "--out", &out, "--resume"];
        let mut waiting = Waiting::start(&workspace, &arguments, &paths(40), &out, 1 + 31);
        waiting.signal(signal);
        assert_eq!(waiting.code(), Some(code), "{signal}");
        let mut resumed = Waiting::start(&workspace, &arguments, &paths(40), &out, 1);
        // Closes its standard input.
        assert!(resumed.0.wait().unwrap().success(), "{signal}");
        assert_eq!(fs::read_to_string(workspace.path(&out)).unwrap(), whole, "{signal}");
    }
}

#[test]
fn stopped_predict_names_the_command_that_goes_on() {
    let workspace = Fixture::Photos.copy();
    let arguments = ["-", "--batch", "1", "--out", "out.csv"];
    let next = "next: calmix predict run --threads 1 - --batch 1 --out out.csv --resume\n";
    let stopped = |arguments: &[&str], images: usize, rows: usize| {
        let mut waiting = Waiting::start(&workspace, arguments, &paths(images), "out.csv", 1 + rows);
        waiting.signal("TERM");
        assert_eq!(waiting.code(), Some(75));
        let mut told = String::new();
        waiting.0.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        told
    };
    let told = stopped(&arguments, 40, 31);
    assert!(told.ends_with(&format!("stopped after 31 images, written to out.csv\n{next}")), "{told}");
    // The rows from before count, too.
    let told = stopped(&[&arguments[..], &["--resume"]].concat(), 80, 40);
    let rows = fs::read_to_string(workspace.path("out.csv")).unwrap().lines().count() - 1;
    assert!(told.ends_with(&format!("stopped after {rows} images, written to out.csv\n{next}")), "{told}");
}

/// A pipe that no process opens for writing, and one that has its paths once.
#[test]
fn list_in_a_pipe_is_read_once_and_left() {
    let workspace = Fixture::Photos.copy();
    let pipe = workspace.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (signal, code) in [("TERM", 75), ("INT", 130)] {
        let out = format!("{signal}.csv");
        let arguments = ["--list", "pipe", "--out", &out];
        let mut waiting = Waiting::start(&workspace, &arguments, "", &out, 1);
        waiting.signal(signal);
        assert_eq!(waiting.code(), Some(code), "{signal}");
        // The paths come when it goes on.
        let arguments = [&arguments[..], &["--resume"]].concat();
        let mut resumed = Waiting::start(&workspace, &arguments, "", &out, 1);
        fs::write(&pipe, paths(3)).unwrap();
        assert!(resumed.0.wait().unwrap().success(), "{signal}");
        assert_eq!(fs::read_to_string(workspace.path(&out)).unwrap().lines().count(), 1 + 3);
    }
    predict(&workspace, &["--list", "nowhere"]).with_code(2).reports(&["nowhere: does not exist"]);
}

/// A reader that takes no rows keeps the first signal from being heard. Two SIGTERM at once are one, as `timeout` sends them.
#[test]
fn second_signal_ends_at_once() {
    let workspace = Fixture::Photos.copy();
    fs::write(workspace.path("list"), paths(3_000)).unwrap();
    for (signal, code) in [("TERM", 75), ("INT", 131)] {
        let arguments = ["predict", "run", "--threads", "1", "--list", "list", "--format", "jsonl"];
        let mut command = workspace.command(&arguments);
        // Rows of more than a pipe holds.
        command.arg("--probabilities").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut blocked = Waiting(command.spawn().unwrap());
        while !blocked.is_idle() {}
        blocked.signal(signal);
        if signal == "TERM" {
            blocked.signal(signal);
        }
        thread::sleep(Duration::from_millis(1_200));
        assert!(blocked.0.try_wait().unwrap().is_none(), "{signal}: the first one ended it");
        blocked.signal(signal);
        assert_eq!(blocked.code(), Some(code), "{signal}");
    }
}
