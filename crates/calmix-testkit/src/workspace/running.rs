//! A command that a test signals while it runs.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

/// A command that is running.
pub struct Running {
    pub child: Child,
    pub stderr: BufReader<ChildStderr>,
}

impl Running {
    pub fn new(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// Waits until standard error has a line with this; what came up to there.
    pub fn until(&mut self, part: &str) -> String {
        let (mut said, mut begin) = (String::new(), 0);
        while !said[begin..].contains(part) {
            begin = said.len();
            let read = self.stderr.read_line(&mut said).unwrap();
            assert!(read > 0, "it ended before it printed {part:?}: {said}");
        }
        said
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for an event.
    pub fn until_event(&mut self, has_happened: impl Fn() -> bool) {
        while !has_happened() {
            assert!(self.child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// The rest of its standard error, and its exit code.
    pub fn stderr(mut self) -> (String, Option<i32>) {
        let mut text = String::new();
        self.stderr.read_to_string(&mut text).unwrap();
        (text, self.child.wait().unwrap().code())
    }

    /// Its standard output, and its exit code.
    pub fn end(mut self) -> (String, Option<i32>) {
        std::io::copy(&mut self.stderr, &mut std::io::sink()).unwrap();
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        (stdout, self.child.wait().unwrap().code())
    }
}
