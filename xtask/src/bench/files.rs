//! The files that the sides of a bench read.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::catalogue::{Files, Made};
use crate::cache::Installed;
use crate::setup::venv;
use crate::workspace;

/// Returns the folder of the dataset if available, or one in the cache, which the script makes if necessary. `None` if there is
/// neither.
pub(crate) fn folder(files: &Files) -> Result<Option<PathBuf>> {
    let dataset = dataset(files);
    match &files.made {
        Some(made) if dataset.is_none() => make(made).map(Some),
        _ => Ok(dataset),
    }
}

/// Returns the folder of the dataset, if available.
pub(crate) fn dataset(files: &Files) -> Option<PathBuf> {
    let datasets = std::env::var_os("CALMIX_DATASETS").filter(|_| !files.dataset.is_empty())?;
    Some(Path::new(&datasets).join(files.dataset)).filter(|dataset| dataset.is_dir())
}

fn make(made: &Made) -> Result<PathBuf> {
    let python = venv::python(made.script.packages)?;
    let script = workspace::root().join(made.script.script);
    let stem = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let installed = Installed::named(&format!("bench/{stem}-{}", made.arguments.join("-")))?;
    installed.ensure(|folder| {
        let mut command = Command::new(&python);
        command.arg("-B").arg(&script).arg(folder).args(made.arguments);
        let status = command.status().with_context(|| format!("cannot start {}", python.display()))?;
        ensure!(status.success(), "{} ended with {status}", made.script.script);
        Ok(())
    })?;
    Ok(installed.folder)
}
