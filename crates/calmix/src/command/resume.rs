//! `calmix resume` of a head. Whole networks are resumed by `calmix-torch`.

use std::path::Path;

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_recipe::Resolved;
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::run::Paths;
use calmix_vectors::head_trainer::HeadTrainer;

use super::resume_args::ResumeArgs;
use super::train::refuse_processes;
use crate::encoder_trial;
use crate::exit::Exit;
use crate::format::shell_quoted;
use crate::launched::launch_variables;
use crate::moved_data::explain_moved;
use crate::progress::ProgressSink;
use crate::run_files::cache_option;
use crate::run_outcome::{next_resume, show_outcome, show_stopped};
use crate::run_summary::resuming;
use crate::stop::Stop;
use crate::terminal::{status, warn, warn_at_once};

pub(super) fn run(args: &ResumeArgs) -> Result<Exit> {
    let processes = launch_variables()?.map(|launch| launch.world).or(args.processes.to_start());
    refuse_processes(processes.unwrap_or(1), "leave `--processes` out, or the launcher")?;
    let layers = inspect::recipe_layers(&args.run)?;
    let layers = if inspect::recipe(&args.run)?.recipe.has_vectors() {
        args.recipe.apply_to_vectors(layers)?
    } else {
        args.recipe.apply(layers)?
    };
    let resolved = layers.resolve()?;
    let overridden = (!args.recipe.is_empty()).then(|| resolved.clone());
    if !args.recipe.quiet {
        status(&resuming(&args.run, &resolved.recipe));
    }
    encoder_trial::of_run(&args.run, &resolved.recipe)?;
    warn_of_cache(&args.run, &resolved)?;
    let stop = Stop::listen()?.announced();
    let progress = ProgressSink::new(&resolved.recipe, args.recipe.quiet).resumed();
    let trainer = HeadTrainer::new(stop.flag()).warning(warn_at_once).sink(progress);
    let trainer = trainer.taking_over(args.processes.take_over);
    let recipe = &resolved.recipe;
    // A head has no checkpoints: there is nothing to wait for.
    let outcome =
        stop.ending_soon(|| show_stopped(&args.run, recipe), || trainer.resume(&args.run, overridden));
    let command = format!("calmix resume {}", shell_quoted(&args.run));
    let outcome = outcome.map_err(|error| explain_moved(error, &resolved.recipe, &command));
    show_outcome(outcome, &args.run, stop, |recipe| next_resume(&args.run, recipe))
}

/// Warns that features are computed again, because only the user decides where calmix writes.
fn warn_of_cache(run: &Path, resolved: &Resolved) -> Result<()> {
    let written = inspect::recipe(run)?.recipe;
    let is_other = written.network.cache != resolved.recipe.network.cache;
    if is_other && resolved.recipe.network.cache.is_empty() && read::result(run)?.is_none() {
        let own = Paths::new(run).features();
        let cache = cache_option(&written);
        warn(&format!(
            "features are computed again and written to {}, because only you decide where calmix writes; to use the cache \
             that the run's recipe names, add{cache}",
            shown(own.display())
        ));
    }
    Ok(())
}
