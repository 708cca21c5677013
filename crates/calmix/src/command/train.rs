//! `calmix train` of a head: on a frozen backbone for images, or on vectors that the user already has. Whole networks are
//! trained by `calmix-torch`.

use std::path::Path;

use anyhow::{Error, Result};
use calmix_io::shown::shown;
use calmix_recipe::VECTORS_RECIPE;
use calmix_recipe::device::Device;
use calmix_vectors::head_trainer::HeadTrainer;
use calmix_vectors::start::{Draft, PreparedRun, RunPlace, prepare_run, prepare_vectors};
use calmix_vectors::threads::threads;

use super::data_args::{existing_data, on_file_system};
use super::train_args::TrainArgs;
use super::train_features::make_features;
use crate::cores::warn_if_oversubscribed;
use crate::data_warnings::warn_about_labels;
use crate::encoder_trial;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::{counted, shell_quoted};
use crate::launched::{launch_variables, shard_of_launch};
use crate::notice_printer::NoticePrinter;
use crate::progress::ProgressSink;
use crate::recipe_warnings::warn_about_recipe;
use crate::run_outcome::{next_resume, show_outcome, show_stopped};
use crate::run_summary::summary;
use crate::runs_here::{FastestDevice, is_vector_file, names_vectors};
use crate::start_notice::{chosen_backbone, chosen_recipe, start_context};
use crate::stop::Stop;
use crate::terminal::{status, warn_at_once};
use crate::version;

pub(super) fn run(args: &TrainArgs, fastest: FastestDevice) -> Result<Exit> {
    on_file_system(args.run_dir.as_deref(), "a run folder")?;
    if names_vectors(args) {
        return on_vectors(args);
    }
    args.refuse_path_as_recipe()?;
    args.overrides.data_folder()?;
    let draft = Draft::new(args.layers()?, fastest)?;
    draft.resolved.ready()?;
    existing_data(Path::new(&draft.resolved.recipe.dataset.path))?;
    encoder_trial::of_recipe(&draft.resolved.recipe)?;
    let launch = launch_variables()?;
    let leads = launch.as_ref().is_none_or(|launch| launch.rank == 0);
    if let Some(chosen) = draft.chosen_recipe.filter(|_| leads && !args.overrides.quiet) {
        status(&chosen_recipe(chosen));
    }
    if args.features_only {
        let shard = args.shard.or_else(|| launch.as_ref().and_then(shard_of_launch));
        return make_features(shard, draft, args.overrides.quiet);
    }
    let processes = launch.as_ref().map(|launch| launch.world).or(args.processes.to_start());
    refuse_processes(
        processes.unwrap_or(1),
        "several processes can only compute its features: --features-only",
    )?;
    let place = match &args.run_dir {
        // A launcher may start the same command again.
        _ if launch.is_some() => RunPlace::NewOrBegun(args.required_run_dir()?.to_owned()),
        Some(folder) => RunPlace::New(folder.clone()),
        None => RunPlace::Next { name: Some(args.run_name(draft.base())) },
    };
    let stop = Stop::listen()?;
    let mut printer = NoticePrinter::new(args.overrides.quiet, "image");
    let prepared = prepare_run(&draft, &place, start_context(&mut printer, &stop))?;
    train(args, &args.run_name(draft.base()), prepared, stop)
}

fn on_vectors(args: &TrainArgs) -> Result<Exit> {
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
    let name = args.run_name(layers.base());
    let place = match &args.run_dir {
        Some(folder) => RunPlace::New(folder.clone()),
        None => RunPlace::Next { name: Some(name.clone()) },
    };
    let stop = Stop::listen()?;
    let mut printer = NoticePrinter::new(args.overrides.quiet, "vector");
    let prepared = prepare_vectors(&layers, &place, start_context(&mut printer, &stop))?;
    train(args, &name, prepared, stop)
}

/// Trains a head that is ready to start, after saying what will be trained.
fn train(args: &TrainArgs, name: &str, prepared: PreparedRun, stop: Stop) -> Result<Exit> {
    let is_quiet = args.overrides.quiet;
    if let Some(choice) = prepared.backbone.as_ref().filter(|_| !is_quiet) {
        status(&chosen_backbone(choice));
    }
    warn_about_recipe(&prepared.resolved);
    warn_about_labels(&prepared.resolved.recipe, &prepared.dataset, &prepared.split)?;
    let recipe = prepared.resolved.recipe.clone();
    if !is_quiet {
        let threads = threads(recipe.train.threads, 1);
        let device = recipe.train.device.or_else(|| Device::Cpu);
        status(&summary(name, &prepared, &format!("{device}, {}", counted(threads.into(), "thread")))?);
        warn_if_oversubscribed(threads, 1);
    }
    let stop = stop.announced();
    let run = prepared.folder.path().to_owned();
    let progress = ProgressSink::new(&recipe, is_quiet);
    let trainer = HeadTrainer::new(stop.flag()).built_from(version::build()).warning(warn_at_once);
    let trainer = trainer.taking_over(args.processes.take_over).sink(progress);
    let outcome = stop.ending_soon(|| show_stopped(&run, &recipe), || trainer.start(prepared));
    show_outcome(outcome.map_err(Error::from), &run, stop, |recipe| next_resume(&run, recipe))
}

/// Refuses to train a head in more than one process; `instead` says what to do.
pub(super) fn refuse_processes(processes: usize, instead: &str) -> Result<(), CliError> {
    if processes <= 1 {
        return Ok(());
    }
    Err(CliError::invalid("a head is trained in one process, within seconds").hint(instead))
}
