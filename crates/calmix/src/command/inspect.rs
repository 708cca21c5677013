//! `calmix inspect`: shows a run, a folder of runs, a checkpoint, a recipe or a dataset.

mod checkpoint;
mod dataset;
mod inspect_output;
mod predictions;
mod recipe;
mod run;
mod runs;

use std::path::Path;

use anyhow::Result;
use calmix_formats::vectors::VectorSource;
use calmix_io::shown::shown;

pub(super) use dataset::document as dataset_json;

use self::inspect_output::InspectOutput;
use crate::args::inspect::InspectArgs;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::output::run_files;
use crate::output::run_list::runs_of_sweep;
use crate::terminal::{print, print_json};

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
