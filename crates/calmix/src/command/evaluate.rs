//! `calmix evaluate` of a run on vectors, which needs no libtorch.

use std::path::Path;

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_run::inspect;
use calmix_vectors::VectorsError;
use calmix_vectors::reevaluate::evaluate_vector_run;

use super::data_args::existing_dataset;
use super::evaluate_args::EvaluateArgs;
use crate::evaluate::on_samples::EvaluationOn;
use crate::evaluate::{changed_recipe, command, show};
use crate::exit::Exit;
use crate::labelled_samples::scratch_folder;
use crate::labelled_vectors;
use crate::launched::threads_of_process;
use crate::model_folder::with_model;
use crate::model_options::ModelOptions;
use crate::moved_vectors::explain_moved;
use crate::predict::input_kind::InputKind;
use crate::stop::{Stop, remove_scratch};
use crate::terminal::status;
use crate::vector_model::{VectorModel, check_device};

pub(super) fn run(args: &EvaluateArgs) -> Result<Exit> {
    match &args.on.on {
        Some(path) => on_vectors(args, path),
        None => on_own_splits(args),
    }
}

fn on_own_splits(args: &EvaluateArgs) -> Result<Exit> {
    check_device(&args.run, args.device)?;
    let changed = changed_recipe(args, args.data.vector_settings()?)?;
    let resolved = match &changed {
        Some(changed) => changed.clone(),
        None => inspect::recipe(&args.run)?,
    };
    let stop = Stop::listen()?;
    status(&format!("evaluating {} …", shown(args.run.display())));
    match stop.ending_soon(|| {}, || evaluate_vector_run(&args.run, changed, stop.flag())) {
        Ok(output) => show(args, &output, InputKind::Vector)?,
        Err(VectorsError::Stopped) => return Ok(stop.exit()),
        Err(error) => {
            let hint = format!("{} --data NEW_PLACE", command(args));
            return Err(explain_moved(error, &resolved.recipe, &hint));
        }
    }
    Ok(Exit::Done)
}

fn on_vectors(args: &EvaluateArgs, path: &Path) -> Result<Exit> {
    let run = with_model(&args.run, "evaluate", &[])?;
    let path = existing_dataset(path)?;
    let model = VectorModel::load(run, &ModelOptions { device: args.device, ..ModelOptions::default() })?;
    let stop = Stop::listen()?;
    let scratch = scratch_folder()?;
    let dataset = labelled_vectors::open(run, &model, path, &args.on.reading, scratch.path(), &stop)?;
    let evaluation = EvaluationOn::new(args, path, InputKind::Vector, model.rule(), &dataset)?;
    let threads = threads_of_process(args.threads, None);
    let predict = || labelled_vectors::predict(&model, path, &dataset, evaluation.ids(), threads, &stop);
    let show = || evaluation.show_if_predicted(predict);
    let is_done = stop.ending_soon(|| remove_scratch(scratch.path()), show)?;
    Ok(if is_done { Exit::Done } else { stop.exit() })
}
