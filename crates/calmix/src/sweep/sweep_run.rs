//! A run of a sweep: its recipe with the user's overrides, and its training by a worker.

use std::path::{Component, Path, PathBuf};

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_lifecycle::LifecycleError;
use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::start::{Draft, RunPlace, prepare_run, prepare_vectors, with_pretrained};
use calmix_recipe::sweep::SweepCell;
use calmix_recipe::{Layers, Origin, Recipe, Resolved, is_for_folders};
use calmix_run::pretrained::weights_folder::WeightsFolder;
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::result::Outcome;

use super::sweep_file::is_on_vectors;
use crate::args::options::data::{existing_data, existing_dataset};
use crate::args::options::recipe::RecipeArgs;
use crate::error::CliError;
use crate::error::explained_error::explain_lifecycle;
use crate::output::format::shell_quoted;
use crate::output::preparation::{NoticePrinter, start_context};
use crate::output::warnings::{warn_about_labels, warn_about_recipe};
use crate::process::stop::Stop;
use crate::terminal::progress::ProgressSink;
use crate::terminal::warn;
use crate::trainer::{ResumedRecipe, Trainer, Trainers, Training};

/// The keys that the vector file decides.
const KEYS_FROM_FILE: [&str; 4] =
    ["dataset.test", "labels.unlabelled_from", "network.weak_views", "network.strong_views"];

/// The keys that the dataset folder decides, in recipes for folders of images.
const KEYS_FROM_FOLDER: [&str; 3] = ["dataset.source", "dataset.test", "labels.unlabelled_from"];

/// A run of a sweep.
pub(crate) struct SweepRun<'a> {
    /// The cell of the sweep.
    pub(crate) cell: SweepCell,
    recipe: CellRecipe,
    /// The folder of the dataset, if `--datasets` names it.
    dataset: Option<PathBuf>,
    trainer: &'a dyn Trainer,
}

/// The recipe of a run, before its dataset is read.
enum CellRecipe {
    Vectors(Box<(Layers, Resolved)>),
    Images(Box<Draft>),
}

impl<'a> SweepRun<'a> {
    /// Resolves the recipe of a run. `datasets`, if given, contains its dataset under the name of its source.
    pub(crate) fn new(
        cell: SweepCell,
        overrides: &RecipeArgs,
        datasets: Option<&Path>,
        trainers: &Trainers<'a>,
    ) -> Result<Self> {
        let datasets = datasets.map(std::path::absolute).transpose()?;
        let (recipe, dataset) = if is_on_vectors(&cell) {
            let dataset = datasets.map(|datasets| datasets.join("vectors"));
            let apply = |layers| overrides.apply_to_vectors(layers);
            let layers = with_overrides(cell.layers(), dataset.as_deref(), apply)?;
            let resolved = layers.clone().resolve()?;
            (CellRecipe::Vectors(Box::new((layers, resolved))), dataset)
        } else {
            let mut dataset = None;
            if let Some(datasets) = datasets {
                let source = overrides.apply(cell.layers())?.resolve()?.recipe.dataset.source;
                dataset = Some(datasets.join(source.to_string()));
            }
            let layers = with_overrides(cell.layers(), dataset.as_deref(), |layers| overrides.apply(layers))?;
            let draft = Draft::new(layers, trainers.fastest)?;
            refuse_outside(&draft.resolved)?;
            (CellRecipe::Images(Box::new(draft)), dataset)
        };
        let trainer = trainers.of(&recipe.resolved().recipe)?;
        Ok(Self { cell, recipe, dataset, trainer })
    }

    /// Returns its recipe, before its dataset is read.
    pub(crate) fn resolved(&self) -> &Resolved {
        self.recipe.resolved()
    }

    /// Returns its recipe, before its dataset is read.
    pub(crate) fn recipe(&self) -> &Recipe {
        &self.resolved().recipe
    }

    /// Returns the path of the dataset; empty if none is given.
    pub(crate) fn data(&self) -> &Path {
        Path::new(&self.recipe().dataset.path)
    }

    /// Checks the dataset and the device, whose errors would recur in every attempt.
    pub(crate) fn ready(&self) -> Result<()> {
        let name = shown(&self.cell.name);
        let has_data = !self.data().as_os_str().is_empty();
        match &self.recipe {
            CellRecipe::Vectors(_) if has_data => existing_dataset(self.data())?,
            CellRecipe::Images(_) if has_data => existing_data(self.data())?,
            CellRecipe::Vectors(_) => {
                let hint = "--data VECTORS, or dataset.path in the sweep file";
                return Err(CliError::invalid(format!("{name}: no vectors given")).hint(hint).into());
            }
            CellRecipe::Images(_) => {
                let hint = "--data FOLDER, or --datasets FOLDER with a folder for each dataset";
                return Err(CliError::invalid(format!("{name}: no dataset folder given")).hint(hint).into());
            }
        };
        self.trainer.check_device(self.recipe())
    }

    /// Refuses a run that began with another recipe, because the sweep file has changed since.
    pub(crate) fn check_unchanged(&self, run: &Path) -> Result<()> {
        if !read::has_begun(run) {
            return Ok(());
        }
        match &self.recipe {
            CellRecipe::Vectors(recipe) => {
                // Use the keys that the run decided when it read the file; the user's settings take precedence.
                let begun = inspect::recipe(run)?;
                let decided =
                    KEYS_FROM_FILE.into_iter().filter_map(|key| Some((key, begun.value(key)?.clone())));
                let planned = recipe.0.clone().decided("the run", decided).resolve()?;
                check_unchanged(run, &planned, |_| false)
            }
            CellRecipe::Images(draft) => {
                let is_folder = is_for_folders(Some(&self.cell.recipe));
                check_unchanged(run, &draft.resolved, |key| is_folder && KEYS_FROM_FOLDER.contains(&key))
            }
        }
    }

    /// Trains the run in this process, from its beginning or from where it stopped.
    pub(crate) fn train(&self, run: &Path, overrides: &RecipeArgs, stop: &Stop) -> Result<Outcome> {
        self.trainer.check(self.recipe())?;
        let request = RunRequest::new(stop.flag()).built_from(self.trainer.build()).warning(warn);
        // Taking over is safe, because this worker has claimed the cell.
        let request = request.taking_over(true).sink(ProgressSink::new(self.recipe(), overrides.quiet));
        let training = Training { request, stop, launch: None, recipe_hash: None };
        if read::has_begun(run) {
            let resumed = ResumedRecipe { resolved: self.resumed(run, overrides)?, is_changed: true };
            return self.trainer.resume(training, run, resumed);
        }
        let place = RunPlace::NewOrBegun(run.to_owned());
        let prepared = match &self.recipe {
            CellRecipe::Vectors(recipe) => {
                let mut printer = NoticePrinter::new(overrides.quiet, "vector");
                prepare_vectors(&recipe.0, &place, start_context(&mut printer, stop))
            }
            CellRecipe::Images(draft) => {
                let mut printer = NoticePrinter::new(overrides.quiet, "image");
                prepare_run(draft, &place, start_context(&mut printer, stop))
            }
        };
        let prepared = prepared.map_err(explain_lifecycle)?;
        if !overrides.quiet {
            warn_about_recipe(&prepared.resolved);
            warn_about_labels(&prepared.resolved.recipe, &prepared.dataset, &prepared.split)?;
        }
        self.trainer.start(training, prepared)
    }

    /// Returns the recipe with which a run that has begun continues.
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
                let layers =
                    with_overrides(layers, self.dataset.as_deref(), |layers| overrides.apply(layers))?;
                with_pretrained(layers, &WeightsFolder::of_user())
                    .map_err(|error| explain_lifecycle(LifecycleError::pretrained(error)))?
            }
        };
        Ok(layers.resolve()?)
    }
}

impl CellRecipe {
    fn resolved(&self) -> &Resolved {
        match self {
            Self::Vectors(recipe) => &recipe.1,
            Self::Images(draft) => &draft.resolved,
        }
    }
}

/// Adds all overrides of the user on top of layers; `dataset` is the path of the dataset in `--datasets`.
fn with_overrides(
    layers: Layers,
    dataset: Option<&Path>,
    apply: impl FnOnce(Layers) -> Result<Layers>,
) -> Result<Layers> {
    let layers = match dataset {
        Some(folder) => {
            let Some(path) = folder.to_str() else {
                let message = format!("{}: its path is not UTF-8", shown(folder.display()));
                return Err(CliError::invalid(message).hint("rename the folder").into());
            };
            layers.set_to("dataset.path", path.to_owned())
        }
        None => layers,
    };
    apply(layers)
}

/// Refuses a run that began with another recipe than the planned one, except for some keys.
fn check_unchanged(run: &Path, planned: &Resolved, may_differ: impl Fn(&str) -> bool) -> Result<()> {
    let changes = inspect::changes_of_run(run, planned)?;
    let Some(change) = changes.iter().find(|change| !may_differ(&change.path)) else { return Ok(()) };
    let message = format!("{}: the sweep has changed since this run began: {change}", shown(run.display()));
    Err(CliError::invalid(message).hint("use another --sweep-dir, or delete the run").into())
}

/// Refuses a feature cache that the sweep file puts outside the working folder. The file may be untrusted, and only the user
/// decides where calmix writes.
fn refuse_outside(resolved: &Resolved) -> Result<()> {
    let cache = Path::new(&resolved.recipe.network.cache);
    let origin = resolved.origin("network.cache");
    let is_below = cache.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !resolved.recipe.has_head() || is_below || !matches!(origin, Origin::Text { .. }) {
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
