//! `calmix inspect`: what is this?

mod checkpoint;
mod dataset;
mod recipe;
mod run;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use crate::exit::Exit;
use crate::failure::Mistake;
use crate::terminal::{say, say_json};

/// Show what something is: a run, a checkpoint, a recipe or a dataset
///
/// A run: how far it is and what came of it. A checkpoint: what it holds, and whether every byte is as it was written. A
/// recipe, by name or as a file: every key with its value and where that came from. A dataset, prepared or not: counts,
/// classes and probable mistakes. Nothing is changed.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub(crate) struct Inspect {
    /// A folder, a file, or the name of a recipe
    what: PathBuf,
    /// Print one JSON document instead, for programs
    #[arg(long)]
    json: bool,
}

const FIELDS: &str = "\
Fields of --json, by its kind:
  run         folder, finished, step (kept; null before the first), steps (in all), recipe,
              recipe_hash, environment, evaluations (the latest, as in events.jsonl), result (as in
              result.json; null before the end), damaged (checkpoints: step and reason)
  checkpoint  folder, hash, manifest (as in its MANIFEST)
  recipe      name or file, hash, recipe (every key), origins (of each value), warnings
  dataset     folder, source (null if prepared), fingerprint, subsets (name, labelled, unlabelled),
              classes (name, labelled), unreadable (null if prepared), warnings";

/// What something is, for people and for programs.
struct Shown {
    text: String,
    json: Value,
}

impl Inspect {
    pub(crate) fn run(self) -> Result<Exit> {
        let what = self.what.as_path();
        let has = |name: &str| what.join(name).exists();
        let shown = if has("run.json") {
            run::shown(what)?
        } else if has("MANIFEST") {
            checkpoint::shown(what)?
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
            say_json(&shown.json)?;
        } else {
            say(&shown.text)?;
        }
        Ok(Exit::Done)
    }
}

/// What is neither a file nor a folder can only be the name of a recipe.
fn named(what: &Path) -> Result<Shown> {
    let name = what.to_string_lossy();
    recipe::named(&name).map_err(|error| {
        let what = format!("{name}: there is no such file or folder, and {error}");
        Mistake::new(what).or_try("`calmix recipes` lists the recipes, `ls runs` the runs").into()
    })
}
