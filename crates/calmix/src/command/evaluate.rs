//! `calmix evaluate`: evaluates the model of a run, on its own splits or on other labelled samples.

use std::path::Path;

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_run::read::inspect;
use calmix_vectors::VectorsError;
use calmix_vectors::reevaluate::evaluate_head_run;

use super::data_args::existing_labelled;
use super::evaluate_args::EvaluateArgs;
use crate::encoder_trial;
use crate::evaluate::on_samples::EvaluationOn;
use crate::evaluate::{changed_recipe, explained, show};
use crate::exit::Exit;
use crate::labelled_samples::scratch_folder;
use crate::launched::threads_of_process;
use crate::loaded_model::LoadedModel;
use crate::model_folder::{input_kind, with_model};
use crate::model_options::ModelOptions;
use crate::predict::input_kind::InputKind;
use crate::stop::{Stop, remove_scratch};
use crate::terminal::status;
use crate::vector_model::check_device;

pub(super) fn run(args: &EvaluateArgs) -> Result<Exit> {
    match &args.on.on {
        Some(path) => on_others(args, path),
        None => on_own_splits(args),
    }
}

/// Evaluates a head on the splits of its run; `calmix-torch` does it for a network, which may have a checkpoint alone.
fn on_own_splits(args: &EvaluateArgs) -> Result<Exit> {
    let has_vectors = inspect::recipe(&args.run)?.recipe.has_vectors();
    let kind = if has_vectors { InputKind::Vector } else { InputKind::Image };
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
    encoder_trial::of_run(&args.run, &resolved.recipe)?;
    let stop = Stop::listen()?;
    status(&format!("evaluating {} …", shown(args.run.display())));
    match stop.ending_soon(|| {}, || evaluate_head_run(&args.run, changed, stop.flag())) {
        Ok(output) => show(args, &output, kind)?,
        Err(VectorsError::Stopped) => return Ok(stop.exit()),
        Err(VectorsError::Data(problem)) => {
            let clearer = explained(&problem, args, &resolved.recipe);
            return Err(clearer.map_or_else(|| problem.into(), Into::into));
        }
        Err(error) => return Err(error.into()),
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
