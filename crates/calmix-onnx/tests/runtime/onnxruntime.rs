//! onnxruntime runs exported models.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// The interpreter of an environment with onnxruntime: `$CALMIX_ONNX_PYTHON`, or the one in the cache.
fn python() -> PathBuf {
    if let Some(named) = env::var_os("CALMIX_ONNX_PYTHON") {
        return named.into();
    }
    let cache = env::var_os("CALMIX_CACHE").filter(|name| !name.is_empty()).map(PathBuf::from);
    let xdg = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let cache = cache.or_else(|| Some(xdg?.join("calmix")));
    let cache = cache.or_else(|| Some(env::home_dir()?.join(".cache").join("calmix")));
    let environments = cache.and_then(|cache| fs::read_dir(cache.join("python")).ok());
    let complete = environments.into_iter().flatten().flatten().map(|entry| entry.path()).find(|folder| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("onnxruntime-") && folder.join("complete").is_file()
    });
    let folder = complete.expect(
        "there is no Python environment with onnxruntime; `cargo xtask setup` creates it, or name an interpreter in \
         CALMIX_ONNX_PYTHON",
    );
    folder.join("bin/python")
}

/// Runs a script with arguments; returns the JSON that it prints.
pub(crate) fn run(script: &Path, arguments: &[&Path]) -> Value {
    let output = Command::new(python()).arg(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The largest difference of each output of `model.onnx` from the examples beside it, and its metadata. onnx's own checker
/// accepts the file, or this panics.
pub(crate) fn compare(folder: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../calmix-onnx/tests/runtime/compare.py");
    run(&script, &[folder])
}

/// Asserts that an output differs by at most `most`.
#[track_caller]
pub(crate) fn is_near(found: &Value, output: &str, most: f64) {
    let difference = found["differences"][output].as_f64().unwrap();
    assert!(difference <= most, "{output}: {difference} is more than {most}: {found}");
}
