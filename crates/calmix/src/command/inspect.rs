//! `calmix inspect`: what is this?

mod checkpoint;
mod dataset;
mod recipe;
mod run;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::exit::Exit;
use crate::failure::Mistake;
use crate::terminal::say;

/// Show what something is: a run, a checkpoint, a recipe or a dataset
///
/// A run: how far it is and what came of it. A checkpoint: what it holds, and whether every byte is as it was written. A
/// recipe, by name or as a file: every key with its value and where that came from. A dataset, prepared or not: counts,
/// classes and probable mistakes. Nothing is changed.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// A folder, a file, or the name of a recipe
    what: PathBuf,
}

impl Inspect {
    pub(crate) fn run(self) -> Result<Exit> {
        let what = self.what.as_path();
        let has = |name: &str| what.join(name).exists();
        let text = if has("run.json") {
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
        say(&text)?;
        Ok(Exit::Done)
    }
}

/// What is neither a file nor a folder can only be the name of a recipe.
fn named(what: &Path) -> Result<String> {
    let name = what.to_string_lossy();
    recipe::named(&name).map_err(|error| {
        let what = format!("{name}: there is no such file or folder, and {error}");
        Mistake::new(what).or_try("`calmix recipes` lists the recipes, `ls runs` the runs").into()
    })
}
