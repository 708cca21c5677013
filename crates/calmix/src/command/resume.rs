//! `calmix resume` of a run on vectors, which needs no libtorch.

use anyhow::Result;
use calmix_run::inspect;
use calmix_vectors::vector_run::VectorTrainer;

use super::resume_args::ResumeArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::shell_quoted;
use crate::moved_vectors::explain_moved;
use crate::progress::ProgressSink;
use crate::run_outcome::{next_resume, show_outcome, show_stopped};
use crate::run_summary::resuming;
use crate::stop::Stop;
use crate::terminal::{status, warn_at_once};

pub(super) fn run(args: &ResumeArgs) -> Result<Exit> {
    if args.processes.to_start().is_some() {
        let message = "a head on vectors is trained in one process, within seconds";
        return Err(CliError::invalid(message).hint("leave `--processes` out").into());
    }
    let resolved = args.recipe.apply_to_vectors(inspect::recipe_layers(&args.run)?)?.resolve()?;
    let overridden = (!args.recipe.is_empty()).then(|| resolved.clone());
    if !args.recipe.quiet {
        status(&resuming(&args.run, &resolved.recipe));
    }
    let stop = Stop::listen()?.announced();
    let progress = ProgressSink::new(&resolved.recipe, args.recipe.quiet).resumed();
    let trainer = VectorTrainer::new(stop.flag()).warning(warn_at_once).sink(progress);
    let trainer = trainer.taking_over(args.processes.take_over);
    let recipe = &resolved.recipe;
    let outcome =
        stop.ending_soon(|| show_stopped(&args.run, recipe), || trainer.resume(&args.run, overridden));
    let outcome = outcome.map_err(|error| {
        let hint = format!("calmix resume {} --data NEW_PLACE", shell_quoted(&args.run));
        explain_moved(error, &resolved.recipe, &hint)
    });
    show_outcome(outcome, &args.run, stop, |recipe| next_resume(&args.run, recipe))
}
