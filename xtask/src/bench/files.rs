//! Files that both sides of a bench read.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::catalogue::Files;
use crate::cache::Installed;
use crate::workspace;

/// The folder of the dataset, if it is there; else one in the cache, made by the script when needed.
pub(crate) fn folder(files: &Files, python: &Path) -> Result<PathBuf> {
    let datasets = std::env::var_os("CALMIX_DATASETS").filter(|_| !files.dataset.is_empty());
    let dataset = datasets.map(|datasets| Path::new(&datasets).join(files.dataset));
    if let Some(dataset) = dataset.filter(|dataset| dataset.is_dir()) {
        return Ok(dataset);
    }
    let script = workspace::root().join(files.script);
    let made = Installed::named(&format!("bench/pictures-{}", files.arguments.join("-")))?;
    made.ensure(|folder| {
        let mut command = Command::new(python);
        command.arg("-B").arg(&script).arg(folder).args(files.arguments);
        let status = command.status().with_context(|| format!("cannot start {}", python.display()))?;
        ensure!(status.success(), "{} ended with {status}", files.script);
        Ok(())
    })?;
    Ok(made.folder)
}
