//! The runs in folders: each may be a run, a folder of runs, or a sweep.

use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_run::read::overview::{is_run, runs_in};

use crate::args::options::data::existing_folder;
use crate::error::CliError;
use crate::output::run_files;

/// Returns the runs in folders, in order; refuses a folder without any.
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

/// Returns the folder that holds the runs of a sweep; `None` if this is not a sweep.
pub(crate) fn runs_of_sweep(folder: &Path) -> Option<PathBuf> {
    let has = |name: &str| folder.join(name).is_dir();
    (has("runs") && has("claims")).then(|| folder.join("runs"))
}
