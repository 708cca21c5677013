//! A run of a sweep that trains a whole network.

use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use calmix::command::data_args::existing_data;
use calmix::command::recipe_args::RecipeArgs;
use calmix::data_warnings::warn_about_labels;
use calmix::error::CliError;
use calmix::io::shown::shown;
use calmix::notice_printer::NoticePrinter;
use calmix::progress::ProgressSink;
use calmix::recipe::OrAuto;
use calmix::recipe::Resolved;
use calmix::recipe::is_for_folders;
use calmix::recipe::sweep::SweepCell;
use calmix::recipe_warnings::warn_about_recipe;
use calmix::run::error::RunError;
use calmix::run::pretrained::weights_folder::WeightsFolder;
use calmix::run::read;
use calmix::run::read::inspect;
use calmix::start_notice::start_context;
use calmix::stop::Stop;
use calmix::sweep::{BY_FOLDER, SweepRun, image_draft, no_dataset, over, refuse_changes};
use calmix::terminal::warn_at_once;
use calmix::vectors::VectorsError;
use calmix::vectors::start::{Draft, RunPlace, prepare_run, with_pretrained};
use calmix_engine::device;
use calmix_train::trainer::{Outcome, TrainError, Trainer};

use crate::build_info;

/// A run of a sweep that trains a whole network.
#[derive(Debug)]
pub(crate) struct NetworkCell {
    cell: SweepCell,
    /// The recipe of the run, before its dataset is read.
    draft: Draft,
    /// The folder of the dataset, if `--datasets` names it.
    dataset: Option<PathBuf>,
}

impl NetworkCell {
    /// Resolves the recipe of a run; its dataset is in `datasets` under the name of its source, if that is given.
    pub(crate) fn new(cell: SweepCell, overrides: &RecipeArgs, datasets: Option<&Path>) -> Result<Self> {
        let datasets = datasets.map(std::path::absolute).transpose()?;
        let (draft, dataset) = image_draft(&cell, overrides, datasets, device::fastest)?;
        Ok(Self { cell, draft, dataset })
    }
}

impl SweepRun for NetworkCell {
    fn cell(&self) -> &SweepCell {
        &self.cell
    }

    fn cell_mut(&mut self) -> &mut SweepCell {
        &mut self.cell
    }

    fn resolved(&self) -> &Resolved {
        &self.draft.resolved
    }

    fn ready(&self) -> Result<()> {
        if self.data().as_os_str().is_empty() {
            return Err(no_dataset(&shown(&self.cell.name)).into());
        }
        existing_data(self.data())?;
        if let OrAuto::Is(device) = self.recipe().train.device {
            device::check(device)
                .map_err(|error| CliError::invalid(error.to_string()).hint("calmix doctor"))?;
        }
        Ok(())
    }

    fn train(&self, run: &Path, overrides: &RecipeArgs, stop: &Stop) -> Result<Outcome> {
        let progress = ProgressSink::new(self.recipe(), overrides.quiet);
        // This worker has claimed the cell.
        let trainer = Trainer::new(stop.flag()).built_from(build_info::build()).taking_over(true);
        let trainer = trainer.warning(warn_at_once).sink(progress);
        if read::has_begun(run) {
            let layers = inspect::recipe_layers(run)?;
            let layers = over(layers, self.dataset.as_deref(), |layers| overrides.apply(layers))?;
            let layers =
                with_pretrained(layers, &WeightsFolder::of_user()).map_err(VectorsError::pretrained)?;
            return Ok(trainer.resume(run, Some(&layers.resolve()?))?);
        }
        let mut printer = NoticePrinter::new(overrides.quiet, "image");
        let place = RunPlace::NewOrBegun(run.to_owned());
        let prepared = prepare_run(&self.draft, &place, start_context(&mut printer, stop))?;
        if !overrides.quiet {
            warn_about_recipe(&prepared.resolved);
            warn_about_labels(&prepared.resolved.recipe, &prepared.dataset, &prepared.split)?;
        }
        Ok(trainer.start_prepared(prepared)?)
    }

    fn refuse_changes(&self, run: &Path) -> Result<()> {
        if !read::has_begun(run) {
            return Ok(());
        }
        let by_folder = |key: &str| is_for_folders(Some(&self.cell.recipe)) && BY_FOLDER.contains(&key);
        refuse_changes(run, &self.draft.resolved, by_folder)
    }

    fn is_locked(&self, error: &Error) -> bool {
        let run = match error.downcast_ref::<TrainError>() {
            Some(TrainError::Run(error)) => Some(error),
            _ => error.downcast_ref::<RunError>(),
        };
        matches!(run, Some(RunError::Locked { .. }))
    }
}
