//! The dataset of a run that is about to start: prepared into its folder, or shared with another run.

use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use calmix::core::shown::shown;
use calmix::data::dataset::Dataset;
use calmix::data::error::DataError;
use calmix::data::prepare::Findings;
use calmix::engine::device::Device;
use calmix::run::run::Paths;
use calmix::train::recipe::{Resolved, SourceName};
use calmix::train::weights_folder::WeightsFolder;

use crate::command::{default_table, recipe_for};
use crate::error::CliError;
use crate::format::shell_quoted;
use crate::preparing::prepare_or_stop;
use crate::stop::Stop;
use crate::terminal::{status, warn};
use crate::{shared_table, source, summary};

/// The recipes for a folder of images.
pub(crate) const GPU_RECIPE: &str = "folder";
pub(crate) const CPU_RECIPE: &str = "cpu-folder";
pub(crate) const HEAD_RECIPE: &str = "head-folder";

/// The data of a run that is about to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunData<'a> {
    /// The folder of the run.
    pub(crate) run: &'a Path,
    /// Whether only warnings are shown.
    pub(crate) is_quiet: bool,
    /// Ends a preparation.
    pub(crate) stop: &'a Stop,
}

/// What settings are decided by that depend on the folder of the dataset.
pub(crate) const FOLDER_CONTENTS: &str = "contents of the dataset folder";

/// The recipe for a folder of images on a device, or on the best one of this machine.
pub(crate) fn folder_recipe(device: Option<Device>) -> &'static str {
    let device = device.or(Device::all().first().copied()).unwrap_or(Device::Cpu);
    let has_weights = || WeightsFolder::of_user().names().is_ok_and(|names| !names.is_empty());
    match device {
        Device::Cpu if has_weights() => HEAD_RECIPE,
        Device::Cpu => CPU_RECIPE,
        Device::Cuda(_) | Device::Mps => GPU_RECIPE,
    }
}

/// Whether a built-in recipe takes whatever subsets a folder of images has.
pub(crate) fn is_for_folders(recipe: Option<&str>) -> bool {
    matches!(recipe, Some(GPU_RECIPE | CPU_RECIPE | HEAD_RECIPE))
}

/// For a folder of images, the setting that says where its labels are.
pub(crate) fn label_format(data: &Path, names_columns: bool) -> String {
    match source::detect(data, names_columns) {
        other @ (SourceName::LabelsCsv | SourceName::Webdataset) => format!("dataset.source = \"{other}\"\n"),
        _ => String::new(),
    }
}

impl RunData<'_> {
    /// The dataset of at least two classes; prepares it into the run's folder unless it is prepared.
    pub(crate) fn open(&self, resolved: &Resolved) -> Result<Dataset> {
        let root = Path::new(&resolved.recipe.dataset.path);
        let dataset = self.open_table(resolved, root)?;
        refuse_one_class(&dataset, root)?;
        Ok(dataset)
    }

    fn open_table(&self, resolved: &Resolved, root: &Path) -> Result<Dataset> {
        let data = &resolved.recipe.dataset;
        if !data.prepared.is_empty() {
            let table = Path::new(&data.prepared);
            let dataset = Dataset::open(table, root)?;
            shared_table::check(table, &dataset, data, root)?;
            return Ok(dataset);
        }
        let target = Paths::new(self.run).prepared();
        if !target.exists() {
            let places = [default_table(root), siblings(self.run)];
            if let Some(shared) = shared_table::share(&data.source_spec(), root, &places, &target) {
                if !self.is_quiet {
                    status(&format!("sharing the table {}", shown(shared.display())));
                }
                summary::warn_again(&target);
                return Ok(Dataset::open(&target, root)?);
            }
            if !self.is_quiet {
                status(&format!("reading {} …", shown(root.display())));
            }
            let report = prepare_or_stop(&data.source_spec(), root, &target, self.stop);
            let report = report.map_err(|error| explain_format(root, data.source, error))?;
            summary::warn_about_data(&Findings::from(&report), &target);
        }
        Ok(Dataset::open(&target, root)?)
    }

    /// Settings for the subsets that a folder of images has: which ones to evaluate on, and which ones to learn from.
    pub(crate) fn subset_settings(&self, dataset: &Dataset, has_head: bool) -> String {
        let has = |name: &str| dataset.header().subsets.iter().any(|subset| subset.name == name);
        let mut test = String::new();
        if !has("test") {
            if !self.is_quiet {
                warn(&format!("there is no test subset: {}", judges(has("val"), has_head)));
            }
            "dataset.test = \"\"\n".clone_into(&mut test);
        }
        let unlabelled: Vec<_> = ["train", "unlabelled"].into_iter().filter(|name| has(name)).collect();
        format!("{test}labels.unlabelled_from = {unlabelled:?}\n")
    }
}

/// What judges a model without a test subset.
fn judges(has_validation: bool, has_head: bool) -> &'static str {
    if has_validation {
        "val judges the model and fits its calibrator, each label without itself"
    } else if has_head {
        "every label judges a head that is trained without it (network.folds)"
    } else {
        "the labels that are held out judge the model (labels.validation)"
    }
}

/// The folder that a run is in.
fn siblings(run: &Path) -> PathBuf {
    let parent = run.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// With one class, every prediction is right.
fn refuse_one_class(dataset: &Dataset, root: &Path) -> Result<()> {
    let [class] = dataset.classes() else { return Ok(()) };
    let message = format!(
        "{}: there is one class, `{}`, and so nothing to tell apart",
        shown(root.display()),
        shown(class)
    );
    Err(CliError::invalid(message).hint("put the images of each class into a folder of its name").into())
}

/// Adds what the files look like, if they do not have the format of the recipe.
fn explain_format(root: &Path, wanted: SourceName, error: Error) -> Error {
    let detected = source::detect(root, false);
    let recipe = recipe_for(detected);
    if !error.is::<DataError>() || recipe == recipe_for(wanted) {
        return error;
    }
    if source::is_own(detected) {
        let hint = format!("calmix train --data {}, for images of your own", shell_quoted(root));
        return CliError::invalid(error.to_string()).hint(hint).into();
    }
    let message = format!("{error}; the files look like {detected}");
    CliError::invalid(message).hint(format!("calmix train {recipe} --data {}", shell_quoted(root))).into()
}
