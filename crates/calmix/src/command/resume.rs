//! `calmix resume` of a run on vectors, which needs no libtorch.

use std::path::Path;

use anyhow::{Error, Result};
use calmix_io::shown::shown;
use calmix_recipe::Recipe;
use calmix_run::inspect;
use calmix_vectors::VectorsError;
use calmix_vectors::vector_run::VectorTrainer;

use super::resume_args::ResumeArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::{counted, shell_quoted};
use crate::progress::ProgressSink;
use crate::run_outcome::{next_resume, show_outcome};
use crate::stop::Stop;
use crate::terminal::{status, warn_at_once};

pub(super) fn run(args: &ResumeArgs) -> Result<Exit> {
    if args.processes.to_start().is_some() {
        let message = "a head on vectors is trained in one process, within seconds";
        return Err(CliError::invalid(message).hint("leave `--processes` out").into());
    }
    let resolved = args.recipe.apply(inspect::recipe_layers(&args.run)?)?.resolve()?;
    let overridden = (!args.recipe.is_empty()).then(|| resolved.clone());
    let steps = counted(resolved.recipe.train.steps, "step");
    if !args.recipe.quiet {
        status(&format!("resuming {}, {steps} in total", shown(args.run.display())));
    }
    let stop = Stop::listen()?.announced();
    let progress = ProgressSink::new(&resolved.recipe, args.recipe.quiet).resumed();
    let trainer = VectorTrainer::new(stop.flag()).warning(warn_at_once).sink(progress);
    let outcome = trainer.taking_over(args.processes.take_over).resume(&args.run, overridden);
    let outcome = outcome.map_err(|error| explain_moved(error, &resolved.recipe, &args.run));
    show_outcome(outcome, &args.run, stop, |recipe| next_resume(&args.run, recipe))
}

/// Replaces an error by a clearer one if the vectors are not where the recipe says.
fn explain_moved(error: VectorsError, recipe: &Recipe, run: &Path) -> Error {
    let path = &recipe.dataset.path;
    if !matches!(error, VectorsError::Data(_)) || Path::new(path).exists() {
        return error.into();
    }
    let message = format!("{}: the vectors of this run have moved or were deleted", shown(path));
    let hint = format!("calmix resume {} --set dataset.path=NEW_PLACE", shell_quoted(run));
    CliError::invalid(message).hint(hint).into()
}
