//! The folder of a model that a command was given: refused with what to do if there is no model in it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix::io::safe_open;
use calmix::io::shown::shown;
use calmix::run::overview::is_run;
use calmix::run::run::{Paths, RunFile};

use crate::command::existing_folder;
use crate::error::CliError;
use crate::format::shell_quoted;
use crate::run_files;

/// The folder, if it has a model in it. `others` are the further paths of `command`: one of them may be the run, in the
/// wrong place.
pub(crate) fn with_model<'a>(run: &'a Path, command: &str, others: &[PathBuf]) -> Result<&'a Path> {
    existing_folder(run)?;
    if has_model(run) {
        return Ok(run);
    }
    let place = shown(run.display());
    if let Some(meant) = others.iter().find(|other| has_model(other)) {
        let message =
            format!("{place} is not a run, and {} is one: the run comes first", shown(meant.display()));
        let hint = format!("calmix {command} {} {}", shell_quoted(meant), shell_quoted(run));
        return Err(CliError::invalid(message).hint(hint).into());
    }
    let error = if is_run(run) {
        let message = format!("{place}: there is no model in it yet, since the run is not finished");
        CliError::failed(message).hint(format!("calmix resume {}", shell_quoted(run)))
    } else {
        let message = format!("{place}: there is no run here, and no model");
        CliError::invalid(message).hint(run_files::find_runs())
    };
    Err(error.into())
}

/// Whether a folder has a file of a model in it; which one is missing is for the model to say.
fn has_model(folder: &Path) -> bool {
    let paths = Paths::new(folder);
    let has = |file| paths.file(file).is_ok_and(|path| safe_open::exists(&path));
    has(RunFile::ModelInfo) || has(RunFile::Model)
}
