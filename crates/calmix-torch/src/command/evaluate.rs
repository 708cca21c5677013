//! `calmix evaluate`: evaluates the model of a run.

use std::io;
use std::path::Path;

use anyhow::{Error, Result};
use calmix::command::data_args::existing_folder;
use calmix::command::evaluate_args::EvaluateArgs;
use calmix::data::error::DataProblem;
use calmix::error::CliError;
use calmix::evaluate::on_samples::EvaluationOn;
use calmix::evaluate::{changed_recipe, command, show};
use calmix::exit::Exit;
use calmix::format::shell_quoted;
use calmix::io::shown::shown;
use calmix::labelled_samples::scratch_folder;
use calmix::launched::threads_of_process;
use calmix::model_folder::with_model;
use calmix::predict::input_kind::InputKind;
use calmix::recipe::Recipe;
use calmix::run::inspect;
use calmix::stop::{Stop, remove_scratch};
use calmix::terminal::status;
use calmix_train::trainer::{TrainError, evaluate_run};

use crate::labelled_folder;
use crate::model::{Model, ModelOptions};
use crate::moved_dataset::explain_moved;

pub(crate) fn run(args: &EvaluateArgs) -> Result<Exit> {
    if let Some(folder) = &args.on.on {
        return on_folder(args, folder);
    }
    let changed = changed_recipe(args, args.data.settings()?)?;
    let resolved = match &changed {
        Some(changed) => changed.clone(),
        None => inspect::recipe(&args.run)?,
    };
    status(&format!("evaluating {} …", shown(args.run.display())));
    let output = evaluate_run(&args.run, changed, args.device)
        .map_err(|error| explain_other(args, error, &resolved.recipe))?;
    show(args, &output, InputKind::Image)?;
    Ok(Exit::Done)
}

fn on_folder(args: &EvaluateArgs, folder: &Path) -> Result<Exit> {
    let folder = existing_folder(folder)?;
    let threads = threads_of_process(args.threads, None);
    let options =
        ModelOptions { device: args.device, threads: Some(threads.get()), ..ModelOptions::default() };
    let model = Model::load_with(with_model(&args.run, "evaluate", &[])?, &options)?;
    let stop = Stop::listen()?;
    let scratch = scratch_folder()?;
    let dataset = labelled_folder::open(&model, folder, &args.on.reading, scratch.path(), &stop)?;
    let evaluation = EvaluationOn::new(args, folder, InputKind::Image, model.rule(), &dataset)?;
    let predict = || labelled_folder::predict(&model, folder, dataset, evaluation.ids(), threads, &stop);
    let show = || evaluation.show_if_predicted(predict);
    let is_done = stop.ending_soon(|| remove_scratch(scratch.path()), show)?;
    Ok(if is_done { Exit::Done } else { stop.exit() })
}

/// Replaces the error about a file that is missing below `--data`: the folder is not the dataset of the run.
fn explain_other(args: &EvaluateArgs, error: TrainError, recipe: &Recipe) -> Error {
    let command = command(args);
    let Some(data) = args.data.named().filter(|data| data.is_dir()) else {
        return explain_moved(error, recipe, &command);
    };
    let problem = match &error {
        TrainError::Data(error) => error.problem(),
        _ => None,
    };
    if !matches!(problem, Some(DataProblem::Io(error)) if error.kind() == io::ErrorKind::NotFound) {
        return explain_moved(error, recipe, &command);
    }
    let message = format!("{}: not the dataset that the run was trained on: {error}", shown(data.display()));
    let hint = format!("{command} --on {}, for other labelled images", shell_quoted(data));
    CliError::invalid(message).hint(hint).into()
}
