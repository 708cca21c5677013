//! `calmix evaluate`: evaluates the model of a run, on its own splits or on other labelled samples.

use std::path::Path;

use anyhow::{Error, Result};
use calmix_data::error::DataError;
use calmix_io::shown::shown;
use calmix_run::read::inspect;

use crate::args::evaluate::EvaluateArgs;
use crate::args::options::data::existing_labelled;
use crate::error::exit::Exit;
use crate::evaluate::on_samples::EvaluationOn;
use crate::evaluate::{changed_recipe, explained, show};
use crate::labelled::samples::scratch_folder;
use crate::model::folder::{input_kind, with_model};
use crate::model::loaded_model::LoadedModel;
use crate::model::options::ModelOptions;
use crate::model::vector_model::check_device;
use crate::predict::input_kind::InputKind;
use crate::process::launched::threads_of_process;
use crate::process::stop::{Stop, remove_scratch};
use crate::terminal::status;
use crate::trainer::{Evaluated, Trainers};

pub(super) fn run(args: &EvaluateArgs, trainers: &Trainers<'_>) -> Result<Exit> {
    match &args.on.on {
        Some(path) => on_others(args, path),
        None => on_own_splits(args, trainers),
    }
}

/// Evaluates the model of a run on the splits of the run, or the newest checkpoint of an unfinished run.
fn on_own_splits(args: &EvaluateArgs, trainers: &Trainers<'_>) -> Result<Exit> {
    let recipe = inspect::recipe(&args.run)?.recipe;
    let trainer = trainers.of(&recipe)?;
    let kind = if recipe.has_vectors() { InputKind::Vector } else { InputKind::Image };
    let settings = match kind {
        InputKind::Image => args.data.settings()?,
        InputKind::Vector => {
            check_device(&args.run, args.device)?;
            args.data.vector_settings()?
        }
    };
    let changed = changed_recipe(args, settings)?;
    let resolved = match &changed {
        Some(changed) => changed.clone(),
        None => inspect::recipe(&args.run)?,
    };
    trainer.check_run(&args.run, &resolved.recipe)?;
    status(&format!("evaluating {} …", shown(args.run.display())));
    let clearer = |error: Error| {
        let problem = error.downcast_ref::<DataError>();
        let clearer = problem.and_then(|problem| explained(problem, args, &resolved.recipe));
        clearer.map_or(error, Error::from)
    };
    match trainer.evaluate(&args.run, changed, args.device).map_err(clearer)? {
        Evaluated::Done(output) => show(args, &output, kind)?,
        Evaluated::Stopped(exit) => return Ok(exit),
    }
    Ok(Exit::Done)
}

fn on_others(args: &EvaluateArgs, path: &Path) -> Result<Exit> {
    let run = with_model(&args.run, "evaluate", &[])?;
    let path = existing_labelled(path, input_kind(run))?;
    let threads = threads_of_process(args.threads, None);
    let options =
        ModelOptions { device: args.device, threads: Some(threads.get()), ..ModelOptions::default() };
    let stop = Stop::listen()?;
    let Some(model) = LoadedModel::load(run, &options, &stop)? else { return Ok(stop.exit()) };
    let scratch = scratch_folder()?;
    let dataset = model.open_labelled(run, path, &args.on.reading, scratch.path(), &stop)?;
    let evaluation = EvaluationOn::new(args, path, model.kind(), model.rule(), &dataset)?;
    let predict = || model.predict_labelled(path, dataset, evaluation.ids(), threads, &stop);
    let show = || evaluation.show_if_predicted(predict);
    let is_done = stop.ending_soon(|| remove_scratch(scratch.path()), show)?;
    Ok(if is_done { Exit::Done } else { stop.exit() })
}
