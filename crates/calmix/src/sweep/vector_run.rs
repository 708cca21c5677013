//! A run of a sweep on vectors that the user already has, which needs no libtorch.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_recipe::sweep::SweepCell;
use calmix_recipe::{Layers, Resolved};
use calmix_run::inspect;
use calmix_run::outcome::Outcome;
use calmix_run::read;
use calmix_run::run_folder::RunPlace;
use calmix_vectors::vector_run::{VectorTrainer, prepare_vectors};

use super::sweep_run::{SweepRun, over, refuse_changes};
use crate::command::data_args::existing_dataset;
use crate::command::recipe_args::RecipeArgs;
use crate::data_warnings::warn_about_labels;
use crate::error::CliError;
use crate::notice_printer::NoticePrinter;
use crate::progress::ProgressSink;
use crate::recipe_warnings::warn_about_recipe;
use crate::stop::Stop;
use crate::terminal::warn_at_once;
use crate::version;

/// Keys that the file of the vectors decides.
const BY_FILE: [&str; 4] =
    ["dataset.test", "labels.unlabelled_from", "network.weak_views", "network.strong_views"];

/// A run of a sweep on vectors.
#[derive(Debug)]
pub struct VectorRun {
    cell: SweepCell,
    layers: Layers,
    resolved: Resolved,
}

impl VectorRun {
    /// Resolves the recipe of a run; its dataset is in `datasets` under the name `vectors`, if that is given.
    ///
    /// # Errors
    /// If the recipe is invalid.
    pub fn new(cell: SweepCell, overrides: &RecipeArgs, datasets: Option<&Path>) -> Result<Self> {
        let apply = |layers| overrides.apply_to_vectors(layers);
        let dataset = datasets.map(std::path::absolute).transpose()?.map(|datasets| datasets.join("vectors"));
        let layers = over(cell.layers(), dataset.as_deref(), apply)?;
        let resolved = layers.clone().resolve()?;
        Ok(Self { cell, layers, resolved })
    }
}

impl SweepRun for VectorRun {
    fn cell(&self) -> &SweepCell {
        &self.cell
    }

    fn cell_mut(&mut self) -> &mut SweepCell {
        &mut self.cell
    }

    fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    fn ready(&self) -> Result<()> {
        if self.data().as_os_str().is_empty() {
            let message = format!("{}: no vectors given", shown(&self.cell.name));
            let hint = "--data VECTORS, or dataset.path in the sweep file";
            return Err(CliError::invalid(message).hint(hint).into());
        }
        existing_dataset(self.data())?;
        Ok(())
    }

    fn refuse_changes(&self, run: &Path) -> Result<()> {
        if !read::has_begun(run) {
            return Ok(());
        }
        // As the run decided them when it read the file; what the user sets takes precedence.
        let begun = inspect::recipe(run)?;
        let decided = BY_FILE.into_iter().filter_map(|key| Some((key, begun.value(key)?.clone())));
        let planned = self.layers.clone().decided("the run", decided).resolve()?;
        refuse_changes(run, &planned, |_| false)
    }

    fn train(&self, run: &Path, overrides: &RecipeArgs, stop: &Stop) -> Result<Outcome> {
        let progress = ProgressSink::new(self.recipe(), overrides.quiet);
        // This worker has claimed the cell.
        let trainer = VectorTrainer::new(stop.flag()).built_from(version::build()).taking_over(true);
        let trainer = trainer.warning(warn_at_once).sink(progress);
        if read::has_begun(run) {
            let path = self.data().to_string_lossy().into_owned();
            let layers = inspect::recipe_layers(run)?.set_to("dataset.path", path);
            let resolved = overrides.apply_to_vectors(layers)?.resolve()?;
            return Ok(trainer.resume(run, Some(resolved))?);
        }
        let mut printer = NoticePrinter::new(overrides.quiet, "vector");
        let place = RunPlace::NewOrBegun(run.to_owned());
        let warn = Arc::new(warn_at_once) as _;
        let prepared = prepare_vectors(&self.layers, &place, stop.flag(), &warn, &mut |notice| {
            printer.show(&notice);
        })?;
        if !overrides.quiet {
            warn_about_recipe(&prepared.resolved);
            warn_about_labels(&prepared.resolved.recipe, &prepared.dataset, &prepared.split)?;
        }
        Ok(trainer.start(prepared)?)
    }
}
