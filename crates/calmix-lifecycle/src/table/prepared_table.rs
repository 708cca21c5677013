//! The prepared table of a run's dataset: where it is, and how it is made.

use std::fs;
use std::path::{Path, PathBuf};

use calmix_data::error::DataError;
use calmix_data::manifest::PREPARING;
use calmix_data::prepare::{Report, prepare};
use calmix_io::counted::counted;
use calmix_io::safe_open;
use calmix_recipe::Recipe;
use calmix_run::events::Note;
use calmix_run::run::Paths;

/// The most left-out files that the events of a run name.
const NAMED: usize = 20;

/// Where the prepared dataset is, or will be.
pub fn prepared(recipe: &Recipe, paths: &Paths) -> PathBuf {
    match recipe.dataset.prepared.as_str() {
        "" => paths.prepared().to_path_buf(),
        folder => PathBuf::from(folder),
    }
}

/// Prepares the dataset of a recipe in the run's own folder, unless it is prepared already; returns what the user should
/// know about it.
///
/// # Errors
/// If the files cannot be read, or the table cannot be written.
pub fn prepare_missing(recipe: &Recipe, paths: &Paths) -> Result<Vec<Note>, DataError> {
    sweep(paths.folder())?;
    let target = prepared(recipe, paths);
    if !recipe.dataset.prepared.is_empty() || safe_open::exists(&target) {
        return Ok(Vec::new());
    }
    let report = prepare(&recipe.dataset.source_spec(), Path::new(&recipe.dataset.path), &target)?;
    Ok(notes(&report))
}

fn notes(report: &Report) -> Vec<Note> {
    let unreadable = report.unreadable.iter().take(NAMED).map(ToString::to_string);
    let more = report.left_out.saturating_sub(NAMED as u64);
    let more = (more > 0).then(|| format!("left out: {}", counted(more, "more file")));
    let found = unreadable.chain(more).chain(report.warnings.iter().map(ToString::to_string));
    let hint = "`calmix prepare` lists every problem of the dataset";
    found.map(|text| Note { step: 0, text, hint: hint.to_owned() }).collect()
}

/// Removes what a process that was killed while it prepared left in the run's folder, whether or not it was locked: this
/// process has the lock of the run.
fn sweep(folder: &Path) -> Result<(), DataError> {
    let cannot = |error| DataError::new(folder, error);
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        if entry.file_name().to_string_lossy().starts_with(PREPARING) {
            fs::remove_dir_all(entry.path()).map_err(|error| DataError::new(entry.path(), error))?;
        }
    }
    Ok(())
}
