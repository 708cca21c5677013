//! `calmix inspect`: shows a run, a checkpoint, a recipe or a dataset.

mod checkpoint;
mod dataset;
mod recipe;
mod run;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use crate::error::CliError;
use crate::exit::Exit;
use crate::terminal::{print, print_json};

/// Show a run, a checkpoint, a recipe or a dataset
///
/// Of a run: its progress and its result. Of a checkpoint: its files, after verifying their checksums. Of a recipe, by
/// name or as a file: every key with its value and the origin of the value. Of a dataset, prepared or not: counts,
/// classes and likely problems. Changes no files.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub(crate) struct InspectArgs {
    /// Folder, file, or name of a recipe
    what: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

const FIELDS: &str = "\
Fields of --json, by kind:
  run         folder, finished, step (of the newest checkpoint, or null), steps (total), recipe,
              recipe_hash, environment, evaluations (the latest, as in events.jsonl), result
              (as in result.json; null before the end), damaged (checkpoints: step and reason)
  checkpoint  folder, hash, manifest (as in its MANIFEST)
  recipe      name or file, hash, recipe (every key), origins (of each value), warnings
  dataset     folder, source (null if prepared), fingerprint, subsets (name, labelled, unlabelled),
              classes (name, labelled), unreadable (null if prepared), warnings";

/// What to print, as text and as JSON.
struct InspectOutput {
    text: String,
    json: Value,
}

impl InspectArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        let what = self.what.as_path();
        let has = |name: &str| what.join(name).exists();
        let inspection = if has("run.json") {
            run::inspect(what)?
        } else if has("MANIFEST") {
            checkpoint::inspect(what)?
        } else if has("manifest.json") && has("samples.bin") {
            dataset::prepared(what)?
        } else if what.is_dir() {
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

/// Neither a file nor a folder: the name of a recipe, or an error.
fn named(what: &Path) -> Result<InspectOutput> {
    let name = what.to_string_lossy();
    recipe::named(&name).map_err(|error| {
        let message = format!("{name}: no such file or folder, and {error}");
        CliError::invalid(message).hint("`calmix recipes` lists the recipes, `ls runs` your runs").into()
    })
}
