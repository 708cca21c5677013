//! `calmix train`: trains a head on a frozen backbone or on the user's own vectors, or a whole network.

use std::path::Path;

use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_data::default_paths::default_prepared_folder;
use calmix_heads::images::PagePart;
use calmix_heads::{HeadsError, trainer};
use calmix_io::shown::shown;
use calmix_lifecycle::request::{RunRequest, threads};
use calmix_lifecycle::start::{Draft, PreparedRun, RunPlace, prepare_run, prepare_vectors};
use calmix_recipe::device::Device;
use calmix_recipe::{Resolved, VECTORS_RECIPE};
use calmix_run::result::Outcome;

use crate::args::options::data::{existing_data, is_vector_file, on_file_system};
use crate::args::train::TrainArgs;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::output::format::{counted, shell_quoted};
use crate::output::preparation::{NoticePrinter, chosen_backbone, chosen_recipe, start_context};
use crate::output::run_outcome::{next_resume, show_outcome, show_stopped};
use crate::output::run_summary::summary;
use crate::output::warnings::{warn_about_labels, warn_about_recipe};
use crate::process::input_shard::InputShard;
use crate::process::launched::{Processes, shard_of_launch, warn_if_oversubscribed};
use crate::process::stop::Stop;
use crate::process::supervise::supervise;
use crate::process::torch_program::names_vectors;
use crate::terminal::progress::ProgressSink;
use crate::terminal::{clear_line, status, warn};
use crate::trainer::{Trainer, Trainers, Training};

/// `calmix train` with its arguments resolved, apart from the recipe.
struct TrainCommand<'a> {
    args: &'a TrainArgs,
    name: String,
    /// The hash of the recipe before its dataset is read, for comparison among several processes.
    hash: Option<String>,
    processes: Processes,
}

pub(super) fn run(args: &TrainArgs, trainers: &Trainers<'_>) -> Result<Exit> {
    on_file_system(args.run_dir.as_deref(), "a run folder")?;
    if names_vectors(args) { on_vectors(args, trainers) } else { on_images(args, trainers) }
}

fn on_images(args: &TrainArgs, trainers: &Trainers<'_>) -> Result<Exit> {
    args.refuse_path_as_recipe()?;
    args.overrides.data.folder()?;
    let draft = Draft::new(args.layers()?, trainers.fastest)?;
    let resolved = &draft.resolved;
    resolved.ready()?;
    existing_data(Path::new(&resolved.recipe.dataset.path))?;
    let trainer = trainers.of(&resolved.recipe)?;
    trainer.check_device(&resolved.recipe)?;
    let processes = Processes::of(&args.processes)?;
    if let Some(chosen) = draft.chosen_recipe.filter(|_| processes.leads() && !args.overrides.quiet) {
        status(&chosen_recipe(chosen));
    }
    if args.features_only {
        let shard = args.shard.or_else(|| processes.launch.as_ref().and_then(shard_of_launch));
        return make_features(shard, draft, args.overrides.quiet);
    }
    trainer
        .check_processes(&processes, "several processes can only compute its features: --features-only")?;
    trainer.check(&resolved.recipe)?;
    let command =
        TrainCommand { args, name: args.run_name(draft.base()), hash: Some(resolved.hash()), processes };
    if !command.processes.leads() {
        return command.follow(trainer, resolved);
    }
    let place = command.place()?;
    let stop = Stop::listen()?;
    let mut printer = NoticePrinter::new(args.overrides.quiet, "image");
    let prepared = prepare_run(&draft, &place, start_context(&mut printer, &stop))?;
    command.train(trainer, prepared, stop)
}

fn on_vectors(args: &TrainArgs, trainers: &Trainers<'_>) -> Result<Exit> {
    if let Some(file) = args.recipe.as_deref().map(Path::new).filter(|file| is_vector_file(file)) {
        let message = format!("{} is a file of vectors, not a recipe", shown(file.display()));
        let hint = format!("calmix train --features {} --labels FILE", shell_quoted(file));
        return Err(CliError::invalid(message).hint(hint).into());
    }
    if args.features.is_empty() {
        // If vectors are given as --data, this fails with the right option.
        args.overrides.data.folder()?;
        let message = format!("the recipe {VECTORS_RECIPE} trains on vectors that you already have");
        return Err(CliError::invalid(message).hint("calmix train --features VECTORS --labels FILE").into());
    }
    let layers = args.layers()?;
    // A head is trained in this process alone, even if a launcher started several.
    let processes = Processes::ALONE;
    let command = TrainCommand { args, name: args.run_name(layers.base()), hash: None, processes };
    let place = command.place()?;
    let stop = Stop::listen()?;
    let mut printer = NoticePrinter::new(args.overrides.quiet, "vector");
    let prepared = prepare_vectors(&layers, &place, start_context(&mut printer, &stop))?;
    command.train(trainers.of(&prepared.resolved.recipe)?, prepared, stop)
}

impl TrainCommand<'_> {
    /// Returns where the folder of the run will be.
    fn place(&self) -> Result<RunPlace> {
        Ok(match &self.args.run_dir {
            // A launcher may start the same command again, so the folder must be named.
            _ if self.processes.launch.is_some() => {
                RunPlace::NewOrBegun(self.args.required_run_dir()?.to_owned())
            }
            Some(folder) => RunPlace::New(folder.clone()),
            None => RunPlace::Next { name: Some(self.name.clone()) },
        })
    }

    /// Announces and trains a run that is ready to start.
    fn train(self, trainer: &dyn Trainer, prepared: PreparedRun, stop: Stop) -> Result<Exit> {
        self.announce(trainer, &prepared)?;
        let run = prepared.folder.path().to_owned();
        let is_quiet = self.args.overrides.quiet;
        if let Some(processes) = self.processes.to_start() {
            let request = RunRequest::new(stop.flag()).built_from(trainer.build());
            trainer.create(request, prepared, processes)?;
            let quiet = is_quiet.then(|| "--quiet".into());
            let arguments = ["resume".into(), run.clone().into()].into_iter().chain(quiet);
            return supervise(&arguments.collect::<Vec<_>>(), processes, &run, &stop);
        }
        let stop = stop.announced();
        let recipe = prepared.resolved.recipe.clone();
        let request = RunRequest::new(stop.flag()).built_from(trainer.build()).warning(warn);
        let request = request.taking_over(self.args.processes.take_over);
        let launch = self.processes.launch.as_ref();
        let training = Training {
            request: request.sink(ProgressSink::new(&recipe, is_quiet)),
            stop: &stop,
            launch,
            recipe_hash: self.hash,
        };
        let train = || trainer.start(training, prepared);
        let outcome = if trainer.has_checkpoints() {
            train()
        } else {
            stop.ending_soon(|| show_stopped(&run, &recipe), train)
        };
        show_outcome(outcome, &run, stop, |recipe| next_resume(&run, recipe, launch))
    }

    /// Shows the summary of the run, and warnings about it.
    fn announce(&self, trainer: &dyn Trainer, prepared: &PreparedRun) -> Result<()> {
        let is_quiet = self.args.overrides.quiet;
        if let Some(choice) = prepared.backbone.as_ref().filter(|_| !is_quiet) {
            status(&chosen_backbone(choice));
        }
        warn_about_recipe(&prepared.resolved);
        warn_about_labels(&prepared.resolved.recipe, &prepared.dataset, &prepared.split)?;
        if is_quiet {
            return Ok(());
        }
        let recipe = &prepared.resolved.recipe;
        let processes = self.processes.local();
        let device = recipe.train.device.or_else(|| trainer.device());
        let threads = threads(recipe.train.threads, processes);
        let each = if processes > 1 { format!(" in each of {processes} processes") } else { String::new() };
        let shared = match device {
            Device::Cpu => format!(", {}{each}", counted(threads.into(), "thread")),
            Device::Cuda(_) | Device::Mps => each,
        };
        let precision = trainer.precision(recipe, device);
        let precision = precision.map(|precision| format!(", {precision}")).unwrap_or_default();
        status(&summary(&self.name, prepared, &format!("{device}{shared}{precision}"))?);
        if device == Device::Cpu {
            warn_if_oversubscribed(threads, processes);
        }
        Ok(())
    }

    /// Trains as a rank other than 0, which neither prepares the dataset nor prints.
    fn follow(self, trainer: &dyn Trainer, resolved: &Resolved) -> Result<Exit> {
        let run = self.args.required_run_dir()?;
        let stop = Stop::listen()?;
        let request = RunRequest::new(stop.flag()).warning(warn);
        let launch = self.processes.launch.as_ref();
        let training = Training { request, stop: &stop, launch, recipe_hash: self.hash };
        let outcome = trainer.follow(training, run, resolved);
        silent_exit(outcome, stop)
    }
}

/// Returns the exit of a process other than rank 0, which prints nothing.
pub(super) fn silent_exit(outcome: Result<Outcome>, stop: Stop) -> Result<Exit> {
    let stopped = stop.exit();
    Ok(if let Outcome::Stopped { .. } = outcome? { stopped } else { Exit::Done })
}

/// Opens the prepared dataset of a recipe, which must exist: several processes must not prepare it at the same time.
fn open_prepared(resolved: &Resolved) -> Result<Dataset> {
    let recipe = &resolved.recipe;
    if !recipe.has_head() {
        let message = "there are no features to compute: network.train is not \"head\"";
        return Err(CliError::invalid(message).hint("`calmix train head-folder` trains a head").into());
    }
    let root = Path::new(&recipe.dataset.path);
    let prepared = match recipe.dataset.prepared.as_str() {
        "" => default_prepared_folder(root),
        prepared => prepared.into(),
    };
    if !prepared.exists() {
        let message = "the dataset is not prepared yet; prepare it first, because several processes cannot do it at once";
        let hint = format!("calmix prepare {}", shell_quoted(root));
        return Err(CliError::invalid(message).hint(hint).into());
    }
    Ok(Dataset::open(&prepared, root)?)
}

/// Returns the pages of the cache that a shard computes.
fn pages(shard: InputShard) -> PagePart {
    let (index, of) = shard.place();
    PagePart { index, of }
}

/// Computes the features that a recipe needs, or this process's part of them.
pub(super) fn make_features(shard: Option<InputShard>, mut draft: Draft, is_quiet: bool) -> Result<Exit> {
    let stop = Stop::listen()?;
    let dataset = open_prepared(&draft.resolved)?;
    draft.use_prepared(dataset.folder());
    let mut printer = NoticePrinter::new(is_quiet, "image");
    let completed = draft.complete(&dataset, &mut start_context(&mut printer, &stop))?;
    let resolved = completed.resolved;
    let part = shard.map_or(PagePart::ALL, pages);
    let stop = stop.announced();
    let progress = ProgressSink::new(&resolved.recipe, is_quiet);
    let request = RunRequest::new(stop.flag()).warning(warn).sink(progress);
    // Nothing is lost: finished pages are in the cache.
    let outcome = stop.ending_soon(clear_line, || trainer::make_features(request, &resolved, part));
    clear_line();
    match outcome {
        Err(HeadsError::Stopped) => return Ok(stop.exit()),
        outcome => outcome?,
    }
    if !is_quiet {
        status(&format!("the features are in {}", shown(&resolved.recipe.network.cache)));
    }
    Ok(Exit::Done)
}
