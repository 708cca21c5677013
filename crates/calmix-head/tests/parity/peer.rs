//! PyTorch in a process of its own, which repeats cases.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use safetensors::tensor::{Dtype, TensorView};
use serde_json::Value;

/// The largest relative differences.
#[derive(Debug)]
pub(crate) struct Apart {
    pub(crate) gradient: f64,
    /// Steps without a comparison of gradients, because a hidden unit is at its kink.
    pub(crate) kinks: f64,
    pub(crate) live: f64,
    pub(crate) average: f64,
}

/// `replay.py`, running.
pub(crate) struct Peer {
    child: Child,
    folders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    pub(crate) fn start() -> Self {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut child = Command::new(python())
            .arg("-B")
            .arg(tests.join("tests/parity/replay.py"))
            .arg(tests.join("../calmix-engine/tests/parity"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let folders = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, folders, answers }
    }

    /// Has a case repeated.
    pub(crate) fn replay(&mut self, case: &Value, tensors: &[(String, Vec<f32>, usize)]) -> Apart {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("case.json"), case.to_string()).expect("written");
        let bytes: Vec<(String, Vec<u8>, Vec<usize>)> = tensors
            .iter()
            .map(|(name, numbers, width)| {
                let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                let shape =
                    if *width == 0 { vec![numbers.len()] } else { vec![numbers.len() / width, *width] };
                (name.clone(), bytes, shape)
            })
            .collect();
        let views = bytes.iter().map(|(name, bytes, shape)| {
            (name, TensorView::new(Dtype::F32, shape.clone(), bytes).expect("whole numbers"))
        });
        let file = safetensors::serialize(views, None).expect("a file");
        fs::write(folder.path().join("case.safetensors"), file).expect("written");
        writeln!(self.folders, "{}", folder.path().display()).expect("replay.py listens");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("replay.py answers");
        let apart: Value = serde_json::from_str(&answer).expect("one line of JSON");
        let number = |name: &str| apart[name].as_f64().expect("a number");
        Apart {
            gradient: number("gradient"),
            kinks: number("kinks"),
            live: number("live"),
            average: number("average"),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends by itself at the end of its input; a test that fails does not wait for that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The interpreter of `cargo xtask setup`, which the environment names for builds with libtorch.
fn python() -> PathBuf {
    let Some(torch) = option_env!("LIBTORCH") else {
        panic!("LIBTORCH does not name the PyTorch to compare with: run `cargo xtask setup` first");
    };
    let environment =
        Path::new(torch).ancestors().nth(4).expect("environment/lib/python3/site-packages/torch");
    environment.join("bin/python")
}
