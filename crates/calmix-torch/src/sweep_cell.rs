//! A run of a sweep on images.

use std::path::{Component, Path, PathBuf};

use anyhow::{Error, Result};
use calmix::command::data_args::existing_data;
use calmix::command::recipe_args::RecipeArgs;
use calmix::data_warnings::warn_about_labels;
use calmix::error::CliError;
use calmix::format::shell_quoted;
use calmix::io::shown::shown;
use calmix::notice_printer::NoticePrinter;
use calmix::progress::ProgressSink;
use calmix::recipe::OrAuto;
use calmix::recipe::is_for_folders;
use calmix::recipe::sweep::SweepCell;
use calmix::recipe::{Origin, Resolved};
use calmix::recipe_warnings::warn_about_recipe;
use calmix::run::error::RunError;
use calmix::run::inspect;
use calmix::run::read;
use calmix::run::weights_folder::WeightsFolder;
use calmix::stop::Stop;
use calmix::sweep::{SweepRun, over, refuse_changes};
use calmix::terminal::warn_at_once;
use calmix_engine::device;
use calmix_train::pretrained_layer::with_pretrained;
use calmix_train::start::{Draft, RunPlace, prepare_run};
use calmix_train::trainer::{Outcome, TrainError, Trainer};

use crate::build_info;
use crate::start_notice::start_context;

/// Keys that the folder of the dataset decides, in the recipes for folders of images.
const BY_FOLDER: [&str; 3] = ["dataset.source", "dataset.test", "labels.unlabelled_from"];

/// A run of a sweep on images.
#[derive(Debug)]
pub(crate) struct ImageRun {
    cell: SweepCell,
    /// The recipe of the run, before its dataset is read.
    draft: Draft,
    /// The folder of the dataset, if `--datasets` names it.
    dataset: Option<PathBuf>,
}

impl ImageRun {
    /// Resolves the recipe of a run; its dataset is in `datasets` under the name of its source, if that is given.
    pub(crate) fn new(cell: SweepCell, overrides: &RecipeArgs, datasets: Option<&Path>) -> Result<Self> {
        let dataset = datasets.map(|datasets| -> Result<PathBuf> {
            let layers = overrides.apply(cell.layers())?;
            let source = layers.resolve()?.recipe.dataset.source;
            Ok(std::path::absolute(datasets)?.join(source.to_string()))
        });
        let dataset = dataset.transpose()?;
        let layers = over(cell.layers(), dataset.as_deref(), |layers| overrides.apply(layers))?;
        let draft = Draft::new(layers)?;
        refuse_outside(&draft.resolved)?;
        Ok(Self { cell, draft, dataset })
    }
}

impl SweepRun for ImageRun {
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
            let message = format!("{}: no dataset folder given", shown(&self.cell.name));
            let hint = "--data FOLDER, or --datasets FOLDER with a folder for each dataset";
            return Err(CliError::invalid(message).hint(hint).into());
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
            let cache = self.draft.feature_cache();
            let layers =
                cache.into_iter().fold(layers, |layers, cache| layers.set_to("network.cache", cache));
            let layers = over(layers, self.dataset.as_deref(), |layers| overrides.apply(layers))?;
            let layers =
                with_pretrained(layers, &WeightsFolder::of_user()).map_err(TrainError::pretrained)?;
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

/// Refuses a cache of features that the sweep file puts outside the working folder: the file may come from an untrusted
/// source, and only the user decides where calmix writes.
fn refuse_outside(resolved: &Resolved) -> Result<()> {
    let cache = Path::new(&resolved.recipe.network.cache);
    let origin = resolved.origin("network.cache");
    let is_below = cache.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if is_below || !matches!(origin, Origin::Text { .. }) {
        return Ok(());
    }
    let cache = shown(cache.display());
    let message = format!(
        "{origin}: network.cache = \"{cache}\" is outside the working folder, where a sweep file must not write"
    );
    let hint = format!(
        "--set {} if you want the features there",
        shell_quoted(Path::new(&format!("network.cache={cache}")))
    );
    Err(CliError::invalid(message).hint(hint).into())
}
