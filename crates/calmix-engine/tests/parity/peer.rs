//! PyTorch in a process of its own, which replays cases.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// `replay.py`, running.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    folders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    pub(crate) fn start() -> Self {
        let python = python();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/replay.py");
        let mut child = Command::new(&python)
            .arg("-B")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} cannot be started: {error}", python.display()));
        let folders = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, folders, answers }
    }

    /// Has the case in a folder replayed.
    pub(crate) fn replay(&mut self, folder: &Path) {
        writeln!(self.folders, "{}", folder.display()).expect("replay.py listens");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("replay.py answers");
        assert_eq!(answer.trim(), "done", "replay.py failed; what it said stands above");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends by itself at the end of its input; a test that fails does not wait for that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The interpreter whose package torch is the libtorch that this test is linked with.
pub(crate) fn python() -> PathBuf {
    let package = Path::new(env!("CALMIX_LIBTORCH"));
    // environment/lib/python3.x/site-packages/torch
    let own = package.ancestors().nth(4).map(|environment| environment.join("bin/python"));
    match own.filter(|program| program.exists()) {
        Some(program) => program,
        // A libtorch by LIBTORCH_USE_PYTORCH is that of the Python on the PATH, which need not be an environment.
        None if package.join("__init__.py").exists() => PathBuf::from("python3"),
        None => panic!(
            "{} is a libtorch without its Python, so there is no PyTorch to compare with: build with the one of \
             `cargo xtask setup`",
            package.display()
        ),
    }
}
