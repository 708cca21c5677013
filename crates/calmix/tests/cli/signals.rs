//! Ctrl-C and its relatives, with real signals.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use crate::desk::Desk;

/// More steps than are made before the first signal arrives.
const MANY: u32 = 400;

/// A command that is running.
pub(crate) struct Going {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Going {
    pub(crate) fn new(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// Waits until this is told.
    pub(crate) fn until(&mut self, part: &str) {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it ended before it said {part:?}");
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// What it told from now on, and how it ended.
    pub(crate) fn told(mut self) -> (String, Option<i32>) {
        let mut told = String::new();
        self.stderr.read_to_string(&mut told).unwrap();
        (told, self.child.wait().unwrap().code())
    }

    /// What it printed, and how it ended.
    pub(crate) fn end(mut self) -> (String, Option<i32>) {
        std::io::copy(&mut self.stderr, &mut std::io::sink()).unwrap();
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        (stdout, self.child.wait().unwrap().code())
    }
}

#[test]
fn a_run_that_is_stopped_says_how_to_go_on_and_does() {
    let desk = Desk::new().with_garments();
    let mut going = Going::new(desk.training(MANY, &["--into", "first"]));
    going.until("step   6/400");
    // Whoever else comes is told who has it.
    desk.run(&["resume", "first"]).with_code(1).tells(&["process ", "has this run; wait until it ends"]);
    going.signal("INT");
    let (stdout, code) = going.end();
    assert_eq!(code, Some(130), "{stdout}");
    assert!(stdout.starts_with("stopped after "), "{stdout}");
    assert!(stdout.contains(" of 400 steps in first: everything up to there is kept\n"), "{stdout}");
    assert!(stdout.ends_with("next: calmix resume first\n"), "{stdout}");
    desk.run(&["inspect", "first"]).with_code(0).says(&[
        " of 400 steps are kept\n",
        "(intervals and a temperature come at the end of the run)",
        "next: calmix resume first\n",
    ]);

    let mut going = Going::new(desk.command(&["resume", "first"]));
    going.until("/400  loss ");
    going.signal("TERM");
    let (stdout, code) = going.end();
    assert_eq!(code, Some(75), "{stdout}");

    let whole = desk.run(&["resume", "first", "--quiet"]).with_code(0);
    whole.says(&["the model after 400 steps\n", "next: calmix inspect first\n"]);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let desk = Desk::new().with_garments();
    // So many resamples that the last evaluation would take minutes.
    let more = ["--into", "first", "--set", "evaluate.bootstrap=1000000", "--set", "evaluate.every=100"];
    let mut going = Going::new(desk.training(2, &more));
    going.until("step 2/2");
    going.signal("INT");
    going.until("stopping at the end of this step; once more to stop at once");
    going.signal("INT");
    let (stdout, code) = going.end();
    assert_eq!((stdout.as_str(), code), ("", Some(130)));
    assert!(!desk.path("first/result.json").exists());
}

/// So many images, all black, that scanning them would take far longer than a signal does. They take no room on the disk.
fn grow(desk: &Desk) {
    const COUNT: u32 = 1 << 28;
    for (name, sides) in [("images-idx3", &[COUNT, 8, 8][..]), ("labels-idx1", &[COUNT])] {
        let mut file = File::create(desk.path(&format!("garments/train-{name}-ubyte"))).unwrap();
        let header: Vec<u8> = sides.iter().flat_map(|side| side.to_be_bytes()).collect();
        file.write_all(&[0, 0, 8, sides.len() as u8]).unwrap();
        file.write_all(&header).unwrap();
        let values: u64 = sides.iter().map(|&side| u64::from(side)).product();
        file.set_len(4 + header.len() as u64 + values).unwrap();
    }
}

/// Whether a table is being written anywhere below.
fn is_being_written(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name() == "samples.bin" || is_being_written(&entry.path()))
}

#[test]
fn preparing_ends_at_the_first_signal_and_leaves_nothing() {
    let desk = Desk::new().with_garments();
    grow(&desk);
    let prepare = ["prepare", "garments", "--source", "fashion-mnist"];
    for (command, name) in [
        (desk.command(&prepare), "INT"),
        (desk.training(8, &[]), "INT"),
        (desk.training(8, &["--into", "first"]), "TERM"),
    ] {
        let mut going = Going::new(command);
        going.until("reading ");
        while !is_being_written(&desk.path(".")) {
            assert!(going.child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::sleep(Duration::from_millis(5));
        }
        going.signal(name);
        assert_eq!(going.end(), (String::new(), Some(130)));
        let left: Vec<_> =
            fs::read_dir(desk.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["garments"]);
    }
    // Nothing stands in the way of the next one.
    fs::remove_dir_all(desk.path("garments")).unwrap();
    let desk = desk.with_garments();
    desk.run(&prepare).with_code(0);
}
