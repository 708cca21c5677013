//! `calmix train`: of a head, on a frozen backbone for images or on vectors that the user already has, or of a whole network.

use std::path::Path;

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::start::{Draft, PreparedRun, RunPlace, prepare_run, prepare_vectors};
use calmix_lifecycle::threads::threads;
use calmix_recipe::device::Device;
use calmix_recipe::{Resolved, VECTORS_RECIPE};
use calmix_run::outcome::Outcome;

use super::train_features::make_features;
use crate::args::options::data::{existing_data, is_vector_file, on_file_system};
use crate::args::train::TrainArgs;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::output::data_warnings::warn_about_labels;
use crate::output::format::{counted, shell_quoted};
use crate::output::notice_printer::NoticePrinter;
use crate::output::recipe_warnings::warn_about_recipe;
use crate::output::run_outcome::{next_resume, show_outcome, show_stopped};
use crate::output::run_summary::summary;
use crate::output::start_notice::{chosen_backbone, chosen_recipe, start_context};
use crate::process::cores::warn_if_oversubscribed;
use crate::process::launched::{Processes, shard_of_launch};
use crate::process::runs_here::names_vectors;
use crate::process::stop::Stop;
use crate::process::supervise::supervise;
use crate::terminal::progress::ProgressSink;
use crate::terminal::{status, warn_at_once};
use crate::trainer::{Trainer, Trainers, Training};

/// What the user asked for, beside the recipe.
struct Asked<'a> {
    args: &'a TrainArgs,
    /// The name of the run.
    name: String,
    /// The hash of the recipe before its dataset is read.
    hash: String,
    processes: Processes,
}

pub(super) fn run(args: &TrainArgs, trainers: &Trainers<'_>) -> Result<Exit> {
    on_file_system(args.run_dir.as_deref(), "a run folder")?;
    if names_vectors(args) { on_vectors(args, trainers) } else { on_images(args, trainers) }
}

fn on_images(args: &TrainArgs, trainers: &Trainers<'_>) -> Result<Exit> {
    args.refuse_path_as_recipe()?;
    args.overrides.data_folder()?;
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
    let asked = Asked { args, name: args.run_name(draft.base()), hash: resolved.hash(), processes };
    if !asked.processes.leads() {
        return asked.follow(trainer, resolved);
    }
    let place = asked.place()?;
    let stop = Stop::listen()?;
    let mut printer = NoticePrinter::new(args.overrides.quiet, "image");
    let prepared = prepare_run(&draft, &place, start_context(&mut printer, &stop))?;
    asked.train(trainer, prepared, stop)
}

fn on_vectors(args: &TrainArgs, trainers: &Trainers<'_>) -> Result<Exit> {
    if let Some(file) = args.recipe.as_deref().map(Path::new).filter(|file| is_vector_file(file)) {
        let message = format!("{} is a file of vectors, not a recipe", shown(file.display()));
        let hint = format!("calmix train --features {} --labels FILE", shell_quoted(file));
        return Err(CliError::invalid(message).hint(hint).into());
    }
    if args.features.is_none() {
        // Refuses vectors that are named as --data, with the option for them.
        args.overrides.data_folder()?;
        let message = format!("the recipe {VECTORS_RECIPE} trains on vectors that you already have");
        return Err(CliError::invalid(message).hint("calmix train --features VECTORS --labels FILE").into());
    }
    let layers = args.layers()?;
    let resolved = layers.clone().resolve()?;
    // A launcher's processes would each train the same head: the variables are not looked at.
    let processes = Processes::ALONE;
    let asked = Asked { args, name: args.run_name(layers.base()), hash: resolved.hash(), processes };
    let place = asked.place()?;
    let stop = Stop::listen()?;
    let mut printer = NoticePrinter::new(args.overrides.quiet, "vector");
    let prepared = prepare_vectors(&layers, &place, start_context(&mut printer, &stop))?;
    asked.train(trainers.of(&resolved.recipe)?, prepared, stop)
}

impl Asked<'_> {
    /// Where the run is going to be.
    fn place(&self) -> Result<RunPlace> {
        Ok(match &self.args.run_dir {
            // A launcher may start the same command again.
            _ if self.processes.launch.is_some() => {
                RunPlace::NewOrBegun(self.args.required_run_dir()?.to_owned())
            }
            Some(folder) => RunPlace::New(folder.clone()),
            None => RunPlace::Next { name: Some(self.name.clone()) },
        })
    }

    /// Trains a run that is ready to start, after saying what will be trained.
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
        let request = RunRequest::new(stop.flag()).built_from(trainer.build()).warning(warn_at_once);
        let request = request.taking_over(self.args.processes.take_over);
        let launch = self.processes.launch.as_ref();
        let training = Training {
            request: request.sink(ProgressSink::new(&recipe, is_quiet)),
            stop: &stop,
            launch,
            asked: Some(self.hash),
        };
        let train = || trainer.start(training, prepared);
        let outcome = if trainer.has_checkpoints() {
            train()
        } else {
            stop.ending_soon(|| show_stopped(&run, &recipe), train)
        };
        show_outcome(outcome, &run, stop, |recipe| next_resume(&run, recipe, launch))
    }

    /// Shows what will be trained, and warnings about it.
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

    /// Trains on a rank other than 0, which neither prepares the dataset nor prints.
    fn follow(self, trainer: &dyn Trainer, resolved: &Resolved) -> Result<Exit> {
        let run = self.args.required_run_dir()?;
        let stop = Stop::listen()?;
        let request = RunRequest::new(stop.flag()).warning(warn_at_once);
        let launch = self.processes.launch.as_ref();
        let training = Training { request, stop: &stop, launch, asked: Some(self.hash) };
        let outcome = trainer.follow(training, run, resolved);
        silent_exit(outcome, stop)
    }
}

/// Returns the exit of a process that is not rank 0 and prints nothing.
pub(super) fn silent_exit(outcome: Result<Outcome>, stop: Stop) -> Result<Exit> {
    let stopped = stop.exit();
    Ok(if let Outcome::Stopped { .. } = outcome? { stopped } else { Exit::Done })
}
