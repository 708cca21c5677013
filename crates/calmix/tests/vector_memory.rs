//! A run of vectors from an untrusted source, whose files are small and whose sizes are not: no command takes more memory than
//! the files justify.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use calmix_head::network::{Head, HeadShape};
use calmix_head::projection::Projection;
use calmix_testkit::npy_file;

use crate::model_files::write_model;

/// Kilobytes that a process may map.
const MAX_MEMORY_KIB: u32 = 2_000_000;
/// Classes × features are 84 GB in f64; the files have 8.5 MB.
const FEATURES: usize = 1 << 20;
const CLASSES: usize = 10_000;

/// Writes a run of one direction, with valid hashes, and a vector.
fn write_run(folder: &Path) {
    let projection = Projection::new(vec![0.5; FEATURES], vec![1e-3; FEATURES]).unwrap();
    let shape = HeadShape { width: 1, hidden: None, classes: CLASSES };
    let numbers = (0..shape.numbers()).map(|n| (n % 97) as f32 / 97.0).collect();
    let head = Head::new(shape, numbers).unwrap();
    let classes = (0..CLASSES).map(|class| format!("c{class}")).collect();
    let run = folder.join("run");
    write_model(&run, &projection, &head, classes, None);
    let size = |name: &str| fs::metadata(run.join(name)).unwrap().len();
    assert!(size("model.safetensors") + size("projection.safetensors") < 9_000_000);

    let vector = npy_file::floats(&[1, FEATURES], (0..FEATURES).map(|n| (n % 5) as f32));
    fs::write(folder.join("vector.npy"), vector).unwrap();
}

/// Runs `calmix` with a limit on what it maps.
fn limited(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {MAX_MEMORY_KIB}; exec \"$0\" \"$@\"")]);
    command.arg(env!("CARGO_BIN_EXE_calmix")).args(arguments).current_dir(folder);
    command.env("CALMIX_TORCH", "/nowhere/calmix-torch").output().unwrap()
}

#[test]
fn memory_is_that_of_the_files_of_a_head() {
    let temp = tempfile::tempdir().unwrap();
    write_run(temp.path());
    let predict = ["predict", "run", "vector.npy", "--out", "predictions.csv"];
    for arguments in [&predict[..], &["export", "run", "--to", "exported"]] {
        let output = limited(temp.path(), arguments);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    }
    assert_eq!(fs::read_to_string(temp.path().join("predictions.csv")).unwrap().lines().count(), 2);
    assert!(fs::metadata(temp.path().join("exported/model.onnx")).unwrap().len() < 20_000_000);
}
