//! `calmix inspect`: shows a run, a folder of runs, a checkpoint, a recipe or a dataset.

mod checkpoint;
mod dataset;
mod predictions;
mod recipe;
mod run;
mod runs;

use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_formats::vectors::VectorSource;
use calmix_io::shown::shown;
use clap::Args;
use serde_json::Value;

pub(super) use dataset::document as dataset_json;

use crate::error::CliError;
use crate::exit::Exit;
use crate::run_files;
use crate::run_list::runs_of_sweep;
use crate::terminal::{print, print_json};

/// Show a run, a folder of runs, a sweep, a checkpoint, a recipe or a dataset
///
/// For a run: its method, the keys that differ from its recipe, seeds, labels, progress and result. For a folder of runs
/// or a sweep: a table of its runs. For a checkpoint: its files, after their checksums are verified. For a recipe, by name
/// or as a file: every key with its value, the origin of the value and its comment. For a dataset, prepared or not:
/// counts, classes and likely problems. For a file in a run's folder `predictions`: every sample by name, with its label
/// and its prediction. Changes no files.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct InspectArgs {
    /// Folder, file, or name of a recipe
    what: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

const FIELDS: &str = "\
Fields of --json, by kind:
  run         folder, finished, step (of the newest checkpoint, or null), steps (total), summary
              (as in summary.json), changed (keys: key, recipe, run; null if the recipe is
              unknown), recipe, recipe_hash, environment, evaluations (the latest, as in
              events.jsonl), result (as in result.json; null before the end), damaged
              (checkpoints: step and reason)
  runs        folder, runs: folder, state, problem, step, summary, metrics (split, samples,
              error, ece_15)
  checkpoint  folder, hash, manifest (as in its MANIFEST)
  recipe      name or file, hash, recipe (every key), origins (of each value), comments, warnings
  dataset     folder, source (null if prepared), fingerprint, subsets (name, labelled, unlabelled),
              classes (name, labelled, subsets), left_out and unreadable (null if prepared),
              warnings
  predictions file, step, split, model, predictions (sample, label, predicted, confidence)";

/// The output of an inspection, as text and as JSON.
struct InspectOutput {
    text: String,
    json: Value,
}

impl InspectArgs {
    pub fn run(self) -> Result<Exit> {
        let what = self.what.as_path();
        let has = |name: &str| what.join(name).exists();
        let inspection = if has("run.json") {
            run::inspect(what)?
        } else if has("MANIFEST") {
            checkpoint::inspect(what)?
        } else if has("manifest.json") && has("samples.bin") {
            dataset::prepared(what)?
        } else if let Some(runs) = runs_of_sweep(what) {
            match runs::inspect(&runs)? {
                Some(table) => table,
                None => {
                    return Err(CliError::invalid(format!(
                        "{}: no run of this sweep has begun",
                        shown(what.display())
                    ))
                    .into());
                }
            }
        } else if what.is_dir() {
            match runs::inspect(what)? {
                Some(table) if runs::are_alone_in(what)? => table,
                // Runs beside other folders: a dataset with runs in it, unless the folders contain no images.
                Some(table) => dataset::raw(what).unwrap_or(table),
                None => dataset::raw(what)?,
            }
        } else if what.is_file() && what.parent().is_some_and(|folder| folder.ends_with("predictions")) {
            predictions::inspect(what)?
        } else if what.is_file() && VectorSource::is_named(what) {
            dataset::raw(what)?
        } else if what.is_file() {
            recipe::file(what)?
        } else {
            named(what)?
        };
        if self.json {
            print_json(&inspection.json)?;
        } else {
            print(&inspection.text)?;
        }
        Ok(Exit::Done)
    }
}

/// Inspects the recipe of this name, which is neither a file nor a folder.
fn named(what: &Path) -> Result<InspectOutput> {
    let name = what.to_string_lossy();
    recipe::named(&name).map_err(|error| {
        let message = format!("{name}: no such file or folder, and {error}");
        CliError::invalid(message)
            .hint(format!("`calmix recipes` lists the recipes; {}", run_files::find_runs()))
            .into()
    })
}
