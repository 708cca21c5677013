//! Running the fuzz targets once on every input of `fuzz/corpus`. Only finding new inputs needs a nightly toolchain.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// The limits in `fuzz/README.md`.
const LIMITS: [&str; 3] = ["-rss_limit_mb=512", "-malloc_limit_mb=64", "-timeout=10"];

/// Runs every target on its inputs.
pub(crate) fn replay() -> Result<()> {
    for (target, inputs) in inputs(&workspace::root().join("fuzz/corpus"))? {
        // A target without inputs did not pass; they may have been removed by mistake.
        ensure!(!inputs.is_empty(), "fuzz/corpus/{target} has no inputs");
        let mut command = workspace::cargo();
        command.args(["run", "--quiet", "--locked", "--package", "calmix-fuzz", "--bin", &target, "--"]);
        let output = command.args(LIMITS).args(&inputs).output().context("cannot start cargo")?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the target {target} ended with {}:\n{text}", output.status);
        // libFuzzer prints a line for each input that it ran.
        let ran = text.lines().filter(|line| line.starts_with("Executed ")).count();
        ensure!(ran == inputs.len(), "the target {target} ran {ran} of {} inputs:\n{text}", inputs.len());
        println!("{target}: {ran} inputs");
    }
    Ok(())
}

/// Returns the inputs of each target, by name.
fn inputs(corpus: &Path) -> Result<BTreeMap<String, Vec<PathBuf>>> {
    let entries = |folder: &Path| -> Result<Vec<PathBuf>> {
        let read = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut paths = read.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        paths.sort();
        Ok(paths)
    };
    let mut inputs = BTreeMap::new();
    for folder in entries(corpus)? {
        let target = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        inputs.insert(target, entries(&folder)?);
    }
    Ok(inputs)
}
