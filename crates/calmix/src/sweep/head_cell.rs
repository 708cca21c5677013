//! A run of a sweep that trains a head: on a frozen backbone for images, or on vectors that the user already has.

use std::path::{Component, Path, PathBuf};

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_recipe::device::Device;
use calmix_recipe::sweep::SweepCell;
use calmix_recipe::{Layers, Origin, Resolved, is_for_folders};
use calmix_run::outcome::Outcome;
use calmix_run::pretrained::weights_folder::WeightsFolder;
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_vectors::VectorsError;
use calmix_vectors::head_trainer::HeadTrainer;
use calmix_vectors::start::{Draft, RunPlace, prepare_run, prepare_vectors, with_pretrained};

use super::plan::is_on_vectors;
use super::sweep_run::{SweepRun, over, refuse_changes};
use crate::command::data_args::{existing_data, existing_dataset};
use crate::command::recipe_args::RecipeArgs;
use crate::data_warnings::warn_about_labels;
use crate::encoder_trial;
use crate::error::CliError;
use crate::format::shell_quoted;
use crate::notice_printer::NoticePrinter;
use crate::progress::ProgressSink;
use crate::recipe_warnings::warn_about_recipe;
use crate::start_notice::start_context;
use crate::stop::Stop;
use crate::terminal::warn_at_once;
use crate::version;

/// Keys that the file of the vectors decides.
const BY_FILE: [&str; 4] =
    ["dataset.test", "labels.unlabelled_from", "network.weak_views", "network.strong_views"];

/// Keys that the folder of the dataset decides, in the recipes for folders of images.
pub const BY_FOLDER: [&str; 3] = ["dataset.source", "dataset.test", "labels.unlabelled_from"];

/// A run of a sweep that trains a head.
#[derive(Debug)]
pub struct HeadCell {
    cell: SweepCell,
    recipe: CellRecipe,
    /// The folder of the dataset, if `--datasets` names it.
    dataset: Option<PathBuf>,
}

/// The recipe of a run, before its dataset is read.
#[derive(Debug)]
enum CellRecipe {
    Vectors(Box<(Layers, Resolved)>),
    Images(Box<Draft>),
}

impl HeadCell {
    /// Resolves the recipe of a run; its dataset is in `datasets` under the name of its source, if that is given.
    ///
    /// # Errors
    /// If the recipe is invalid.
    pub fn new(cell: SweepCell, overrides: &RecipeArgs, datasets: Option<&Path>) -> Result<Self> {
        let datasets = datasets.map(std::path::absolute).transpose()?;
        if is_on_vectors(&cell) {
            let dataset = datasets.map(|datasets| datasets.join("vectors"));
            let apply = |layers| overrides.apply_to_vectors(layers);
            let layers = over(cell.layers(), dataset.as_deref(), apply)?;
            let resolved = layers.clone().resolve()?;
            let recipe = CellRecipe::Vectors(Box::new((layers, resolved)));
            return Ok(Self { cell, recipe, dataset });
        }
        let (draft, dataset) = image_draft(&cell, overrides, datasets, || Device::Cpu)?;
        refuse_outside(&draft.resolved)?;
        Ok(Self { cell, recipe: CellRecipe::Images(Box::new(draft)), dataset })
    }

    /// The recipe with which a run that has begun goes on.
    fn resumed(&self, run: &Path, overrides: &RecipeArgs) -> Result<Resolved> {
        let layers = inspect::recipe_layers(run)?;
        let layers = match &self.recipe {
            CellRecipe::Vectors(_) => {
                let path = self.data().to_string_lossy().into_owned();
                overrides.apply_to_vectors(layers.set_to("dataset.path", path))?
            }
            CellRecipe::Images(draft) => {
                let cache = draft.feature_cache();
                let layers =
                    cache.into_iter().fold(layers, |layers, cache| layers.set_to("network.cache", cache));
                let layers = over(layers, self.dataset.as_deref(), |layers| overrides.apply(layers))?;
                with_pretrained(layers, &WeightsFolder::of_user()).map_err(VectorsError::pretrained)?
            }
        };
        Ok(layers.resolve()?)
    }
}

/// The draft of a run on images, and the folder of its dataset if `datasets` has it under the name of its source.
///
/// # Errors
/// If the recipe is invalid.
pub fn image_draft(
    cell: &SweepCell,
    overrides: &RecipeArgs,
    datasets: Option<PathBuf>,
    fastest: impl FnOnce() -> Device,
) -> Result<(Draft, Option<PathBuf>)> {
    let mut dataset = None;
    if let Some(datasets) = datasets {
        let source = overrides.apply(cell.layers())?.resolve()?.recipe.dataset.source;
        dataset = Some(datasets.join(source.to_string()));
    }
    let layers = over(cell.layers(), dataset.as_deref(), |layers| overrides.apply(layers))?;
    Ok((Draft::new(layers, fastest)?, dataset))
}

impl SweepRun for HeadCell {
    fn cell(&self) -> &SweepCell {
        &self.cell
    }

    fn cell_mut(&mut self) -> &mut SweepCell {
        &mut self.cell
    }

    fn resolved(&self) -> &Resolved {
        match &self.recipe {
            CellRecipe::Vectors(recipe) => &recipe.1,
            CellRecipe::Images(draft) => &draft.resolved,
        }
    }

    fn ready(&self) -> Result<()> {
        let name = shown(&self.cell.name);
        let has_data = !self.data().as_os_str().is_empty();
        match &self.recipe {
            CellRecipe::Vectors(_) if has_data => existing_dataset(self.data())?,
            CellRecipe::Images(_) if has_data => existing_data(self.data())?,
            CellRecipe::Vectors(_) => {
                let hint = "--data VECTORS, or dataset.path in the sweep file";
                return Err(CliError::invalid(format!("{name}: no vectors given")).hint(hint).into());
            }
            CellRecipe::Images(_) => return Err(no_dataset(&name).into()),
        };
        Ok(())
    }

    fn refuse_changes(&self, run: &Path) -> Result<()> {
        if !read::has_begun(run) {
            return Ok(());
        }
        match &self.recipe {
            CellRecipe::Vectors(recipe) => {
                // As the run decided them when it read the file; what the user sets takes precedence.
                let begun = inspect::recipe(run)?;
                let decided = BY_FILE.into_iter().filter_map(|key| Some((key, begun.value(key)?.clone())));
                let planned = recipe.0.clone().decided("the run", decided).resolve()?;
                refuse_changes(run, &planned, |_| false)
            }
            CellRecipe::Images(draft) => {
                let is_folder = is_for_folders(Some(&self.cell.recipe));
                refuse_changes(run, &draft.resolved, |key| is_folder && BY_FOLDER.contains(&key))
            }
        }
    }

    fn train(&self, run: &Path, overrides: &RecipeArgs, stop: &Stop) -> Result<Outcome> {
        let progress = ProgressSink::new(self.recipe(), overrides.quiet);
        // This worker has claimed the cell.
        let trainer = HeadTrainer::new(stop.flag()).built_from(version::build()).taking_over(true);
        let trainer = trainer.warning(warn_at_once).sink(progress);
        encoder_trial::of_recipe(self.recipe())?;
        if read::has_begun(run) {
            return Ok(trainer.resume(run, Some(self.resumed(run, overrides)?))?);
        }
        let place = RunPlace::NewOrBegun(run.to_owned());
        let prepared = match &self.recipe {
            CellRecipe::Vectors(recipe) => {
                let mut printer = NoticePrinter::new(overrides.quiet, "vector");
                prepare_vectors(&recipe.0, &place, start_context(&mut printer, stop))?
            }
            CellRecipe::Images(draft) => {
                let mut printer = NoticePrinter::new(overrides.quiet, "image");
                prepare_run(draft, &place, start_context(&mut printer, stop))?
            }
        };
        if !overrides.quiet {
            warn_about_recipe(&prepared.resolved);
            warn_about_labels(&prepared.resolved.recipe, &prepared.dataset, &prepared.split)?;
        }
        Ok(trainer.start(prepared)?)
    }
}

/// The error about a run on images without a dataset.
pub fn no_dataset(name: &str) -> CliError {
    let hint = "--data FOLDER, or --datasets FOLDER with a folder for each dataset";
    CliError::invalid(format!("{name}: no dataset folder given")).hint(hint)
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
