//! A run of a sweep, with everything that the user overrides.

use std::path::{Component, Path, PathBuf};

use anyhow::Result;
use calmix::core::shown::shown;
use calmix::engine::device::Device;
use calmix::run::read;
use calmix::train::inspect;
use calmix::train::recipe::engine::OrAuto;
use calmix::train::recipe::{Layers, Origin, Resolved};
use calmix::train::sweep::SweepCell;
use calmix::train::trainer::{Outcome, Trainer};

use crate::backbone::{cache, with_weights};
use crate::command::{RecipeArgs, existing_folder, quicker};
use crate::error::CliError;
use crate::format::shell_quoted;
use crate::progress::ProgressSink;
use crate::run_data::{FOLDER_CONTENTS, RunData, is_for_folders, label_format};
use crate::run_dir::RunDir;
use crate::stop::Stop;
use crate::summary;
use crate::terminal::warn_at_once;
use crate::version;

/// Keys that the folder of the dataset decides, in the recipes for folders of images.
const BY_FOLDER: [&str; 3] = ["dataset.source", "dataset.test", "labels.unlabelled_from"];

/// A run of a sweep, with everything that the user overrides.
#[derive(Debug)]
pub(crate) struct PlannedCell {
    pub(crate) cell: SweepCell,
    /// Its recipe, before its dataset is looked at.
    pub(crate) resolved: Resolved,
    /// Settings that name the dataset's folder, if it is one of many, and that of the features of a head.
    places: Vec<String>,
}

impl PlannedCell {
    /// Resolves the recipe of a run; its dataset is in `datasets` under the name of its source, if that is given.
    pub(crate) fn new(cell: SweepCell, overrides: &RecipeArgs, datasets: Option<&Path>) -> Result<Self> {
        let resolve = |places: &[String]| -> Result<Resolved> {
            let layers = places.iter().fold(cell.layers(), |layers, setting| layers.set(setting));
            Ok(with_weights(overrides.apply(layers)?)?.resolve()?)
        };
        let mut places = Vec::new();
        let mut resolved = resolve(&places)?;
        if let Some(datasets) = datasets {
            let folder: PathBuf =
                std::path::absolute(datasets)?.join(resolved.recipe.dataset.source.to_string());
            places.push(format!("dataset.path={}", folder.display()));
            resolved = resolve(&places)?;
        }
        if resolved.recipe.has_head() {
            refuse_outside(&resolved)?;
            let cache = match resolved.recipe.network.cache.as_str() {
                // Its runs share them.
                "" => std::path::absolute(cache(Path::new(&resolved.recipe.dataset.path)))?,
                cache => PathBuf::from(cache),
            };
            places.push(format!("network.cache={}", cache.display()));
            resolved = resolve(&places)?;
        }
        Ok(Self { cell, resolved, places })
    }

    /// The folder of its dataset.
    pub(crate) fn data(&self) -> &Path {
        Path::new(&self.resolved.recipe.dataset.path)
    }

    /// Checks what would fail in every attempt: the dataset's folder and the device.
    pub(crate) fn ready(&self) -> Result<()> {
        if self.data().as_os_str().is_empty() {
            let message = format!("{}: where is the dataset?", shown(&self.cell.name));
            let hint = "--data FOLDER, or --datasets FOLDER with a folder for each dataset";
            return Err(CliError::invalid(message).hint(hint).into());
        }
        existing_folder(self.data())?;
        if let OrAuto::Is(device) = self.resolved.recipe.train.device {
            Device::check(device)
                .map_err(|error| CliError::invalid(error.to_string()).hint("calmix doctor"))?;
        }
        Ok(())
    }

    /// Trains the run in this process: from its beginning, or from where it stopped.
    pub(crate) fn train(&self, run: &Path, overrides: &RecipeArgs, stop: &Stop) -> Result<Outcome> {
        let recipe = &self.resolved.recipe;
        let progress = ProgressSink::new(recipe.train.steps, overrides.quiet, quicker(recipe));
        // This worker has claimed the cell.
        let trainer = Trainer::new(stop.flag()).built_from(version::build()).taking_over(true);
        let trainer = trainer.warning(warn_at_once).sink(progress);
        if read::has_begun(run) {
            let layers = self.over(inspect::recipe_layers(run)?, overrides)?;
            return Ok(trainer.resume(run, Some(&layers.resolve()?))?);
        }
        let mut run_dir = RunDir::create_or_reuse(run)?;
        let data = RunData { run, is_quiet: overrides.quiet, stop };
        let mut resolved = self.resolved.clone();
        let mut found = String::new();
        if is_for_folders(Some(&self.cell.recipe)) {
            found = label_format(self.data(), false);
            resolved = self.with_contents(&found, overrides)?;
        }
        let dataset = data.open(&resolved)?;
        if is_for_folders(Some(&self.cell.recipe)) {
            found += &data.subset_settings(&dataset, resolved.recipe.has_head());
            resolved = self.with_contents(&found, overrides)?;
        }
        if !overrides.quiet {
            summary::warn_about_recipe(&resolved);
            summary::warn_about_labels(&resolved, &dataset)?;
        }
        drop(dataset);
        run_dir.unlock();
        Ok(trainer.start(&resolved, run)?)
    }

    /// The recipe with what the folder of the dataset decides below everything else.
    fn with_contents(&self, found: &str, overrides: &RecipeArgs) -> Result<Resolved> {
        let contents = Layers::new().recipe(&self.cell.recipe).decided(FOLDER_CONTENTS, found);
        Ok(self.over(self.cell.over(contents), overrides)?.resolve()?)
    }

    /// Layers with everything that the user overrides above them.
    fn over(&self, layers: Layers, overrides: &RecipeArgs) -> Result<Layers> {
        let layers = self.places.iter().fold(layers, |layers, setting| layers.set(setting));
        with_weights(overrides.apply(layers)?)
    }

    /// Refuses a run of another recipe under its name: the sweep file has changed since it began.
    pub(crate) fn refuse_changes(&self, run: &Path) -> Result<()> {
        if !read::has_begun(run) {
            return Ok(());
        }
        let by_folder = |key: &str| is_for_folders(Some(&self.cell.recipe)) && BY_FOLDER.contains(&key);
        let changes = inspect::changes_of_run(run, &self.resolved)?;
        let Some(change) = changes.iter().find(|change| !by_folder(&change.path)) else { return Ok(()) };
        let message =
            format!("{}: the sweep has changed since this run began: {change}", shown(run.display()));
        Err(CliError::invalid(message).hint("take another --sweep-dir, or remove the run").into())
    }
}

/// Refuses a cache of features that the sweep file puts outside the working folder: the file may come from somebody else, and
/// only the user says where calmix writes.
fn refuse_outside(resolved: &Resolved) -> Result<()> {
    let cache = Path::new(&resolved.recipe.network.cache);
    let origin = resolved.origin("network.cache");
    let is_below = cache.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if is_below || !matches!(origin, Origin::Text { .. }) {
        return Ok(());
    }
    let cache = shown(cache.display());
    let message = format!(
        "{origin}: network.cache = \"{cache}\" is outside the working folder, where a sweep file names nothing"
    );
    let hint = format!(
        "--set {} if you want the features there",
        shell_quoted(Path::new(&format!("network.cache={cache}")))
    );
    Err(CliError::invalid(message).hint(hint).into())
}
