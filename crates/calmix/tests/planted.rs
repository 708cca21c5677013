//! Vectors with planted classes, and `calmix` as a user runs it: without libtorch.
#![allow(dead_code, reason = "no test uses all of it")]

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use calmix_testkit::npy_file;

pub(crate) const WIDTH: usize = 16;
pub(crate) const CLASSES: [&str; 3] = ["ant", "bee", "cow"];

/// The class of a row.
pub(crate) fn class(row: usize) -> &'static str {
    CLASSES[row % CLASSES.len()]
}

/// The numbers of a row, near the centre of its class. The same row always has the same numbers.
pub(crate) fn vector(row: usize) -> Vec<f32> {
    let mut state = row as u64 + 1;
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    let centre = |n: usize| if n % CLASSES.len() == row % CLASSES.len() { 1.0 } else { 0.0 };
    // The first numbers of near seeds are alike.
    noise();
    (0..WIDTH).map(|n| centre(n) + 3.0 * noise()).collect()
}

/// Writes rows as an `.npy` of `f32`, or of `f64`.
pub(crate) fn write_npy(path: &Path, rows: Range<usize>, is_double: bool) {
    let element = if is_double { "<f8" } else { "<f4" };
    let mut file = npy_file::header(element, &[rows.len(), WIDTH]);
    for number in rows.flat_map(vector) {
        if is_double {
            file.extend(f64::from(number).to_le_bytes());
        } else {
            file.extend(number.to_le_bytes());
        }
    }
    fs::write(path, file).unwrap();
}

/// Writes the labels of the first rows of a file that begins with row `first`.
pub(crate) fn write_labels(path: &Path, first: usize, labels: usize) {
    let mut text = "id,label\n".to_owned();
    for row in 0..labels {
        text.extend([row.to_string().as_str(), ",", class(first + row), "\n"]);
    }
    fs::write(path, text).unwrap();
}

/// Runs `calmix` from a folder without `calmix-torch`.
pub(crate) fn calmix(folder: &Path, arguments: &[&str]) -> Output {
    let program = folder.join("bin/calmix");
    if !program.exists() {
        fs::create_dir_all(folder.join("bin")).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_calmix"), &program).unwrap();
    }
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("PATH", "/usr/bin:/bin").env_remove("CALMIX_TORCH");
    command.stdin(Stdio::null()).output().unwrap()
}

/// What a command has printed.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout))
}
