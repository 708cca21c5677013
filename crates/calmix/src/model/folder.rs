//! The folders of models and runs that the user names; refused with a hint if there is no model or run in them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_io::safe_open;
use calmix_io::shown::shown;
use calmix_run::read;
use calmix_run::read::overview::{is_run, runs_in};
use calmix_run::run::{Paths, RunFile};

use crate::args::options::data::existing_folder;
use crate::error::CliError;
use crate::output::format::shell_quoted;
use crate::output::run_files;
use crate::predict::input::InputKind;

/// Returns the folder if it contains a model. `others` are the further paths of `command`: one of them may be the run, in the
/// wrong position.
pub(crate) fn with_model<'a>(run: &'a Path, command: &str, others: &[PathBuf]) -> Result<&'a Path> {
    existing_folder(run)?;
    if has_model(run) {
        return Ok(run);
    }
    let place = shown(run.display());
    if let Some(meant) = others.iter().find(|other| has_model(other)) {
        let message =
            format!("{place} is not a run, but {} is; the run must come first", shown(meant.display()));
        let hint = format!("calmix {command} {} {}", shell_quoted(meant), shell_quoted(run));
        return Err(CliError::invalid(message).hint(hint).into());
    }
    let error = if is_run(run) {
        let message = format!("{place}: there is no model yet, because the run is not finished");
        CliError::failed(message).hint(format!("calmix resume {}", shell_quoted(run)))
    } else {
        let message = format!("{place}: there is no run and no model here");
        CliError::invalid(message).hint(run_files::find_runs())
    };
    Err(error.into())
}

/// Returns whether a folder contains any file of a model. If some are missing, loading the model names one.
pub(crate) fn has_model(folder: &Path) -> bool {
    has(folder, RunFile::ModelInfo) || has(folder, RunFile::Model)
}

/// Returns the kind of input of a folder's model.
pub(crate) fn input_kind(folder: &Path) -> InputKind {
    match read::model_info(folder) {
        Ok(info) => InputKind::of(&info),
        // If model.json is damaged, the other files show what the model reads.
        Err(_) if has_vector_head(folder) => InputKind::Vector,
        Err(_) => InputKind::Image,
    }
}

/// Returns whether a folder has the files of a head on vectors; a head on images also has a backbone.
fn has_vector_head(folder: &Path) -> bool {
    has(folder, RunFile::Projection)
        && ![RunFile::Backbone, RunFile::Encoder].iter().any(|&file| has(folder, file))
}

fn has(folder: &Path, file: RunFile<'_>) -> bool {
    Paths::new(folder).file(file).is_ok_and(|path| safe_open::exists(&path))
}

/// Returns the runs in these folders, in order; refuses a folder without runs.
pub(crate) fn runs_of(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut runs = Vec::new();
    for folder in folders {
        let mut found =
            if is_run(existing_folder(folder)?) { vec![folder.clone()] } else { runs_in(folder)? };
        if let Some(inside) = runs_of_sweep(folder).filter(|_| found.is_empty()) {
            found = runs_in(&inside)?;
        }
        if found.is_empty() {
            let message = format!("{}: neither a run nor a folder of runs", shown(folder.display()));
            return Err(CliError::invalid(message).hint(run_files::find_runs()).into());
        }
        runs.extend(found);
    }
    Ok(runs)
}

/// Returns the folder with the runs of a sweep; `None` if this is not a sweep.
pub(crate) fn runs_of_sweep(folder: &Path) -> Option<PathBuf> {
    let has = |name: &str| folder.join(name).is_dir();
    (has("runs") && has("claims")).then(|| folder.join("runs"))
}
