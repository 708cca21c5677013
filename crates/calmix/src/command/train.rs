//! `calmix train`: trains a model from a recipe and a dataset.

use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use calmix::core::shown::shown;
use calmix::data::dataset::Dataset;
use calmix::data::error::DataError;
use calmix::data::prepare::Findings;
use calmix::engine::device::Device;
use calmix::run::run::Paths;
use calmix::train::launch::LaunchInfo;
use calmix::train::recipe::engine::OrAuto;
use calmix::train::recipe::{Layers, Resolved, SourceName};
use calmix::train::trainer::Trainer;
use clap::Args;

use super::data_args::existing_folder;
use super::prepare::{default_table, recipe_for};
use super::process_args::ProcessArgs;
use super::quicker::quicker;
use super::recipe_args::RecipeArgs;
use super::resume::{show_outcome, silent_exit};
use super::source_args::SourceArgs;
use crate::beside::beside;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::shell_quoted;
use crate::preparing::prepare_or_stop;
use crate::progress::ProgressSink;
use crate::run_dir::RunDir;
use crate::stop::Stop;
use crate::supervise::supervise;
use crate::terminal::{status, warn, warn_at_once};
use crate::{shared_table, source, summary};

/// Train a model from a recipe and a dataset
///
/// For a folder of images, the default RECIPE is `folder` on a GPU, and `cpu-folder`, a small one, on a CPU.
/// You can override every key of a recipe: in a FILE, by an environment variable (CALMIX_TRAIN__STEPS=2000), or with
/// --set. Later ones in this list win.
///
/// A run is a folder. You can stop it with Ctrl-C or kill it at any time; `calmix resume` resumes it, bit-identical to an
/// uninterrupted run.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TrainArgs {
    /// Built-in recipe; `calmix recipes` lists them
    recipe: Option<String>,
    /// Your own recipe in TOML; overrides keys of RECIPE, or of the recipe that it `extends`
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Folder of the run; it must be empty or not exist [default: runs/RECIPE-1, -2, …]
    // Not `--run`: torchrun refuses it as an ambiguous abbreviation of its own `--run-path`, wherever it stands.
    #[arg(long, value_name = "FOLDER")]
    run_dir: Option<PathBuf>,
    /// Seed of everything random and of which labels are kept (train.seed and labels.seed)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    #[command(flatten)]
    processes: ProcessArgs,
    #[command(flatten)]
    reading: SourceArgs,
    #[command(flatten)]
    overrides: RecipeArgs,
}

const EXAMPLES: &str = "\
Examples:
  calmix train --data photos
  calmix train cpu-fashion-mnist --data fashion-mnist
  calmix train cifar10 --data cifar-10-batches-bin --set labels.count=25 --seed 1
  calmix train --file mine.toml --run-dir runs/mine";

impl TrainArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        let base = self.base()?;
        let name = self.name(base.as_deref());
        let layers = |found: &str| {
            let layers = base.iter().fold(Layers::new(), |layers, name| layers.recipe(name));
            // Below everything that the user sets.
            self.overridden(layers.text(Path::new("contents of the dataset folder"), found))
        };
        let mut resolved = layers(&self.label_format(base.as_deref())?)?.resolve()?;
        resolved.ready()?;
        let root = PathBuf::from(&resolved.recipe.dataset.path);
        existing_folder(&root)?;
        if let OrAuto::Is(device) = resolved.recipe.train.device {
            device.check().map_err(|error| CliError::invalid(error.to_string()).hint("calmix doctor"))?;
        }
        let launch = self.processes.launch_info()?;
        let leads = launch.as_ref().is_none_or(|launch| launch.rank == 0);
        if let Some(chosen) = base.as_deref().filter(|_| self.chooses() && leads && !self.overrides.quiet) {
            status(&chosen_because(chosen));
        }
        let requested = resolved.hash();
        if let Some(launch) = launch.as_ref().filter(|launch| launch.rank > 0) {
            return follow(launch, &resolved, requested, self.required_run_dir()?);
        }
        let mut run_dir = match &launch {
            Some(_) => RunDir::create_or_reuse(self.required_run_dir()?)?,
            None => RunDir::create(self.run_dir.as_deref(), &beside(&root), &name)?,
        };
        let stop = Stop::listen()?;
        let dataset = self.dataset(&resolved, &root, run_dir.path(), &stop)?;
        refuse_one_class(&dataset, &root)?;
        if is_for_folders(base.as_deref()) {
            let found =
                self.label_format(base.as_deref())? + &subset_settings(&dataset, self.overrides.quiet);
            resolved = layers(&found)?.resolve()?;
        }
        summary::warn_about_recipe(&resolved);
        summary::warn_about_labels(&resolved, &dataset)?;
        if !self.overrides.quiet {
            let processes = launch.as_ref().map(|launch| launch.local_world).or(self.processes.to_start());
            let processes = (processes.unwrap_or(1), launch.is_some());
            summary::show(&name, &resolved, &dataset, run_dir.path(), processes)?;
        }
        drop(dataset);
        run_dir.unlock();
        if let Some(processes) = self.processes.to_start() {
            Trainer::new(stop.flag()).create(resolved, run_dir.path(), processes)?;
            let quiet = self.overrides.quiet.then(|| "--quiet".into());
            let arguments = ["resume".into(), run_dir.path().into()].into_iter().chain(quiet);
            return supervise(&arguments.collect::<Vec<_>>(), processes, run_dir.path(), &stop);
        }
        let stop = stop.announced();
        let trainer = Trainer::new(stop.flag()).warning(warn_at_once).sink(ProgressSink::new(
            resolved.recipe.train.steps,
            self.overrides.quiet,
            quicker(&resolved.recipe),
        ));
        let outcome = match &launch {
            Some(launch) => trainer
                .join(launch, &resolved.recipe)
                .and_then(|trainer| trainer.asked(requested).start_or_resume(&resolved, run_dir.path())),
            None => trainer.start(&resolved, run_dir.path()),
        };
        show_outcome(outcome.map_err(Error::from), run_dir.path(), stop, launch.as_ref())
    }

    /// The layers of a recipe with everything that the user sets above them.
    fn overridden(&self, layers: Layers) -> Result<Layers> {
        let layers = self.file.iter().fold(layers, |layers, file| layers.file(file));
        let layers = self.overrides.apply(layers.environment(std::env::vars_os()))?;
        let seeds =
            self.seed.into_iter().flat_map(|seed| ["train.seed", "labels.seed"].map(|key| (key, seed)));
        let layers =
            seeds.fold(layers, |layers, (key, seed)| layers.option("--seed", key, &seed.to_string()));
        Ok(self.reading.settings().iter().fold(layers, |layers, setting| layers.set(setting)))
    }

    /// Whether calmix chooses the recipe.
    fn chooses(&self) -> bool {
        self.recipe.is_none() && self.file.is_none()
    }

    /// The folder of the run: a launcher may start the same command again, so the user has to name it.
    fn required_run_dir(&self) -> Result<&Path> {
        self.run_dir.as_deref().ok_or_else(|| {
            let message = "a launcher started this process and may start it again, so it needs --run-dir";
            CliError::invalid(message).hint("--run-dir FOLDER, a folder that all processes share").into()
        })
    }

    /// The built-in recipe to start from.
    fn base(&self) -> Result<Option<String>> {
        if !self.chooses() {
            return Ok(self.recipe.clone());
        }
        let Some(data) = self.overrides.data_folder()? else {
            let message = "no recipe, no recipe file and no dataset folder given";
            let hint = "`calmix recipes` lists the recipes; `calmix train --data FOLDER` trains on a folder of images";
            return Err(CliError::invalid(message).hint(hint).into());
        };
        let source = source::detect(data, self.reading.names_columns());
        if source::is_own(source) {
            let layers = self.overridden(Layers::new())?;
            let asked = layers.word("train.device").and_then(|name| name.parse::<Device>().ok());
            let device = asked.or(Device::all().first().copied()).unwrap_or(Device::Cpu);
            return Ok(Some(if device == Device::Cpu { CPU_RECIPE } else { GPU_RECIPE }.to_owned()));
        }
        let message =
            format!("{}: the files look like {source}, which needs a recipe", shown(data.display()));
        let hint = format!("calmix train {} --data {}", recipe_for(source), shell_quoted(data));
        Err(CliError::invalid(message).hint(hint).into())
    }

    /// The name of the run: that of its recipe or of its file.
    fn name(&self, base: Option<&str>) -> String {
        let file = || self.file.as_ref()?.file_stem()?.to_str().map(str::to_owned);
        self.recipe.clone().or_else(file).or(base.map(str::to_owned)).unwrap_or("run".to_owned())
    }

    /// For a folder of images, the setting that says where its labels are.
    fn label_format(&self, base: Option<&str>) -> Result<String> {
        let data = self.overrides.data_folder()?.filter(|_| is_for_folders(base));
        let source = data.map(|data| source::detect(data, self.reading.names_columns()));
        let other = source.filter(|source| matches!(source, SourceName::LabelsCsv | SourceName::Webdataset));
        Ok(other.map(|source| format!("dataset.source = \"{source}\"\n")).unwrap_or_default())
    }

    /// The dataset; prepares it into the run's folder unless it is prepared.
    fn dataset(&self, resolved: &Resolved, root: &Path, run: &Path, stop: &Stop) -> Result<Dataset> {
        let data = &resolved.recipe.dataset;
        if !data.prepared.is_empty() {
            let table = Path::new(&data.prepared);
            let dataset = Dataset::open(table, root)?;
            shared_table::check(table, &dataset, data, root)?;
            return Ok(dataset);
        }
        let target = Paths::new(run).prepared();
        if !target.exists() {
            let places = [default_table(root), siblings(run)];
            if let Some(shared) = shared_table::share(&data.source_spec(), root, &places, &target) {
                if !self.overrides.quiet {
                    status(&format!("sharing the table {}", shown(shared.display())));
                }
                summary::warn_again(&Findings::read(&target)?, &target);
                return Ok(Dataset::open(&target, root)?);
            }
            if !self.overrides.quiet {
                status(&format!("reading {} …", shown(root.display())));
            }
            let report = prepare_or_stop(&data.source_spec(), root, &target, stop);
            let report = report.map_err(|error| explain_format(root, data.source, error))?;
            summary::warn_about_data(&Findings::from(&report), &target);
        }
        Ok(Dataset::open(&target, root)?)
    }
}

/// The recipes for a folder of images.
const GPU_RECIPE: &str = "folder";
const CPU_RECIPE: &str = "cpu-folder";

/// Which recipe calmix has chosen, why, and how to choose otherwise.
fn chosen_because(recipe: &str) -> String {
    if recipe == CPU_RECIPE {
        format!(
            "recipe {CPU_RECIPE}, for a CPU; `calmix train {GPU_RECIPE}` takes a larger network on larger images, for a GPU"
        )
    } else {
        format!("recipe {GPU_RECIPE}, for a GPU; `calmix train {CPU_RECIPE}` takes minutes on a CPU")
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

/// Whether a built-in recipe takes whatever subsets a folder of images has.
fn is_for_folders(recipe: Option<&str>) -> bool {
    matches!(recipe, Some(GPU_RECIPE | CPU_RECIPE))
}

/// Trains on a rank other than 0, which neither prepares the dataset nor prints.
fn follow(launch: &LaunchInfo, resolved: &Resolved, requested: String, run: &Path) -> Result<Exit> {
    let stop = Stop::listen()?;
    let trainer =
        Trainer::new(stop.flag()).warning(warn_at_once).join(launch, &resolved.recipe)?.asked(requested);
    let outcome = trainer.start_or_resume(resolved, run);
    silent_exit(outcome, stop)
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

/// Settings for the subsets that a folder of images has: which ones to evaluate on, and which ones to learn from.
fn subset_settings(dataset: &Dataset, is_quiet: bool) -> String {
    let has = |name: &str| dataset.header().subsets.iter().any(|subset| subset.name == name);
    let test = match (has("test"), has("val")) {
        (true, _) => String::new(),
        (false, true) => "dataset.test = \"val\"\n".to_owned(),
        (false, false) => {
            if !is_quiet {
                warn(
                    "there is no test subset: the labels that are held out judge the model (labels.validation)",
                );
            }
            "dataset.test = \"\"\n".to_owned()
        }
    };
    let unlabelled: Vec<_> = ["train", "unlabelled"].into_iter().filter(|name| has(name)).collect();
    format!("{test}labels.unlabelled_from = {unlabelled:?}\n")
}
