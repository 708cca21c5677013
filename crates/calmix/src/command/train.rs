//! `calmix train`: trains a model from a recipe and a dataset.

use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use calmix::core::shown::shown;
use calmix::engine::device::Device;
use calmix::train::launch::LaunchInfo;
use calmix::train::recipe::engine::OrAuto;
use calmix::train::recipe::{Layers, Resolved};
use calmix::train::trainer::Trainer;
use clap::Args;

use super::data_args::existing_folder;
use super::features::make_features;
use super::prepare::recipe_for;
use super::process_args::ProcessArgs;
use super::quicker::quicker;
use super::recipe_args::RecipeArgs;
use super::recipe_draft::RecipeDraft;
use super::resume::{show_outcome, silent_exit};
use super::source_args::SourceArgs;
use crate::beside::beside;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::shell_quoted;
use crate::predict::input_shard::InputShard;
use crate::progress::ProgressSink;
use crate::run_data::{CPU_RECIPE, GPU_RECIPE, HEAD_RECIPE, RunData, folder_recipe};
use crate::run_dir::RunDir;
use crate::stop::Stop;
use crate::supervise::supervise;
use crate::terminal::{status, warn_at_once};
use crate::{source, summary, version};

/// Train a model from a recipe and a dataset
///
/// For a folder of images, the default RECIPE is `folder` on a GPU; on a CPU `head-folder` where pretrained weights are at
/// hand (`calmix weights`), and else `cpu-folder`, a small one.
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
    /// Only make the features of a frozen backbone, for runs that come later; several processes can share the work
    #[arg(long)]
    features_only: bool,
    /// With --features-only, which part of them, as 2/4; a launcher's processes share them by themselves
    #[arg(long, value_name = "I/N", requires = "features_only")]
    shard: Option<InputShard>,
    #[command(flatten)]
    processes: ProcessArgs,
    #[command(flatten)]
    pub(super) reading: SourceArgs,
    #[command(flatten)]
    pub(super) overrides: RecipeArgs,
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
        let mut draft = RecipeDraft::new(&self, base)?;
        let mut resolved = draft.resolve()?;
        resolved.ready()?;
        let root = PathBuf::from(&resolved.recipe.dataset.path);
        existing_folder(&root)?;
        if let OrAuto::Is(device) = resolved.recipe.train.device {
            device.check().map_err(|error| CliError::invalid(error.to_string()).hint("calmix doctor"))?;
        }
        let launch = self.processes.launch_info()?;
        let leads = launch.as_ref().is_none_or(|launch| launch.rank == 0);
        if let Some(chosen) = draft.base().filter(|_| self.chooses() && leads && !self.overrides.quiet) {
            status(&chosen_because(chosen));
        }
        if self.features_only {
            let shard = self.shard.or_else(|| launch.as_ref().and_then(InputShard::of_launch));
            return make_features(shard, &mut draft, &resolved, self.overrides.quiet);
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
        let data = RunData { run: run_dir.path(), is_quiet: self.overrides.quiet, stop: &stop };
        let dataset = data.open(&resolved)?;
        resolved = draft.take_dataset(&data, &dataset)?;
        if let Some(choice) = draft.chosen().filter(|_| !self.overrides.quiet) {
            status(&choice.because());
        }
        summary::warn_about_recipe(&resolved);
        summary::warn_about_labels(&resolved, &dataset)?;
        if !self.overrides.quiet {
            let processes = launch.as_ref().map(|launch| launch.local_world).or(self.processes.to_start());
            summary::show(&name, &resolved, &dataset, run_dir.path(), processes.unwrap_or(1))?;
        }
        drop(dataset);
        run_dir.unlock();
        if let Some(processes) = self.processes.to_start() {
            let trainer = Trainer::new(stop.flag()).built_from(version::build());
            trainer.create(resolved, run_dir.path(), processes)?;
            let quiet = self.overrides.quiet.then(|| "--quiet".into());
            let arguments = ["resume".into(), run_dir.path().into()].into_iter().chain(quiet);
            return supervise(&arguments.collect::<Vec<_>>(), processes, run_dir.path(), &stop);
        }
        let stop = stop.announced();
        let trainer = Trainer::new(stop.flag()).built_from(version::build()).warning(warn_at_once);
        let trainer = trainer.taking_over(self.processes.take_over);
        let trainer = trainer.sink(ProgressSink::new(
            resolved.recipe.train.steps,
            self.overrides.quiet,
            quicker(&resolved.recipe),
        ));
        let outcome = match &launch {
            Some(launch) => stop
                .ending_at_signal(|| trainer.join(launch, &resolved.recipe))
                .and_then(|trainer| trainer.asked(requested).start_or_resume(&resolved, run_dir.path())),
            None => trainer.start(&resolved, run_dir.path()),
        };
        show_outcome(outcome.map_err(Error::from), run_dir.path(), stop, launch.as_ref())
    }

    /// The layers of a recipe with everything that the user sets above them.
    pub(super) fn overridden(&self, layers: Layers) -> Result<Layers> {
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
            return Ok(Some(folder_recipe(asked).to_owned()));
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
}

/// Which recipe calmix has chosen, why, and how to choose otherwise.
fn chosen_because(recipe: &str) -> String {
    if recipe == HEAD_RECIPE {
        return format!(
            "recipe {HEAD_RECIPE}, since pretrained weights are at hand: a head on frozen features; `calmix train {CPU_RECIPE}` \
             trains a whole network from scratch"
        );
    }
    if recipe == CPU_RECIPE {
        format!(
            "recipe {CPU_RECIPE}, for a CPU; `calmix train {GPU_RECIPE}` takes a larger network on larger images, for a GPU"
        )
    } else {
        format!("recipe {GPU_RECIPE}, for a GPU; `calmix train {CPU_RECIPE}` takes minutes on a CPU")
    }
}

/// Trains on a rank other than 0, which neither prepares the dataset nor prints.
fn follow(launch: &LaunchInfo, resolved: &Resolved, requested: String, run: &Path) -> Result<Exit> {
    let stop = Stop::listen()?;
    let trainer = Trainer::new(stop.flag()).warning(warn_at_once);
    let trainer = stop.ending_at_signal(|| trainer.join(launch, &resolved.recipe))?;
    let outcome = trainer.asked(requested).start_or_resume(resolved, run);
    silent_exit(outcome, stop)
}
