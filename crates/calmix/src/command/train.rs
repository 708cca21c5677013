//! `calmix train --features`: trains a head on vectors that the user already has.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Error, Result};
use calmix_io::shown::shown;
use calmix_recipe::VECTORS_RECIPE;
use calmix_run::run_folder::RunPlace;
use calmix_vectors::read_vectors::VectorShape;
use calmix_vectors::threads::threads;
use calmix_vectors::vector_run::{PreparedVectors, VectorTrainer, prepare_vectors};

use super::train_args::TrainArgs;
use crate::cores::warn_if_oversubscribed;
use crate::data_warnings::warn_about_labels;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::{counted, shell_quoted};
use crate::notice_printer::NoticePrinter;
use crate::progress::ProgressSink;
use crate::recipe_warnings::warn_about_recipe;
use crate::run_outcome::{next_resume, show_outcome, show_stopped};
use crate::run_summary::RunSummary;
use crate::runs_here::is_vector_file;
use crate::stop::Stop;
use crate::terminal::{status, warn_at_once};
use crate::version;

pub(super) fn run(args: &TrainArgs) -> Result<Exit> {
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
    let is_quiet = args.overrides.quiet;
    let stop = Stop::listen()?;
    let mut printer = NoticePrinter::new(is_quiet, "vector");
    let prepared =
        prepare_vectors(&layers, &place, stop.flag(), &(Arc::new(warn_at_once) as _), &mut |notice| {
            printer.show(&notice);
        })?;
    warn_about_recipe(&prepared.resolved);
    warn_about_labels(&prepared.resolved.recipe, &prepared.dataset, &prepared.split)?;
    if !is_quiet {
        show(&name, &prepared)?;
    }
    let stop = stop.announced();
    let run = prepared.folder.path().to_owned();
    let progress = ProgressSink::new(&prepared.resolved.recipe, is_quiet);
    let trainer = VectorTrainer::new(stop.flag()).built_from(version::build()).warning(warn_at_once);
    let trainer = trainer.taking_over(args.processes.take_over).sink(progress);
    let recipe = prepared.resolved.recipe.clone();
    let outcome = stop.ending_soon(|| show_stopped(&run, &recipe), || trainer.start(prepared));
    show_outcome(outcome.map_err(Error::from), &run, stop, |recipe| next_resume(&run, recipe))
}

/// Shows what will be trained.
fn show(name: &str, prepared: &PreparedVectors) -> Result<()> {
    let PreparedVectors { resolved, dataset, split, folder } = prepared;
    let network = &resolved.recipe.network;
    let shape = VectorShape::of(dataset)?;
    let views = match shape.views {
        1 => String::new(),
        _ => format!(": {} weak and {} strong views", network.weak_views, network.strong_views),
    };
    let threads = threads(resolved.recipe.train.threads, 1);
    let summary = RunSummary {
        name,
        resolved,
        dataset,
        split,
        run: folder.path(),
        network: format!("a {} head on vectors of {} numbers{views}", network.head, shape.width),
        samples: "vectors",
        device: format!("cpu, {}", counted(threads.into(), "thread")),
    };
    status(&summary.text()?);
    warn_if_oversubscribed(threads, 1);
    Ok(())
}
