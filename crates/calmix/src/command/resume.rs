//! `calmix resume`: continues a network from its newest checkpoint, or a head from its beginning.

use std::path::Path;

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_lifecycle::request::RunRequest;
use calmix_recipe::Recipe;
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::run::Paths;

use super::train::silent_exit;
use crate::args::resume::ResumeArgs;
use crate::error::exit::Exit;
use crate::error::explained_error::explain_moved;
use crate::output::format::shell_quoted;
use crate::output::run_files::cache_option;
use crate::output::run_outcome::{next_resume, show_outcome, show_stopped};
use crate::output::run_summary::resuming;
use crate::process::launched::Processes;
use crate::process::stop::Stop;
use crate::process::supervise::{own_arguments, stop_when_orphaned, supervise};
use crate::terminal::progress::ProgressSink;
use crate::terminal::{status, warn};
use crate::trainer::{ResumedRecipe, Trainers, Training};

pub(super) fn run(args: &ResumeArgs, trainers: &Trainers<'_>) -> Result<Exit> {
    let processes = Processes::of(&args.processes)?;
    let begun = inspect::recipe(&args.run)?.recipe;
    let trainer = trainers.of(&begun)?;
    trainer.check_processes(&processes, "leave `--processes` out, or the launcher")?;
    let layers = inspect::recipe_layers(&args.run)?;
    let layers = if begun.has_vectors() {
        args.recipe.apply_to_vectors(layers)?
    } else {
        args.recipe.apply(layers)?
    };
    let resolved = layers.resolve()?;
    let recipe = resolved.recipe.clone();
    let launch = processes.launch.as_ref();
    if !args.recipe.quiet && launch.is_none() {
        status(&resuming(&args.run, &recipe));
    }
    trainer.check_run(&args.run, &recipe)?;
    if let Some(processes) = processes.to_start() {
        return supervise(&own_arguments(), processes, &args.run, &Stop::listen()?);
    }
    warn_of_cache(&args.run, &begun, &recipe)?;
    let stop = Stop::listen()?.announced_if(processes.leads());
    let mut progress = ProgressSink::new(&recipe, args.recipe.quiet);
    if launch.is_none() {
        progress = progress.resumed();
    } else {
        stop_when_orphaned();
    }
    let request = RunRequest::new(stop.flag()).warning(warn).sink(progress);
    let request = request.taking_over(args.processes.take_over);
    let training = Training { request, stop: &stop, launch, recipe_hash: None };
    let resumed = ResumedRecipe { resolved, is_changed: !args.recipe.is_empty() };
    let train = || trainer.resume(training, &args.run, resumed);
    let outcome = if trainer.has_checkpoints() {
        train()
    } else {
        // A head has no checkpoint to wait for.
        stop.ending_soon(|| show_stopped(&args.run, &recipe), train)
    };
    if !processes.leads() {
        return silent_exit(outcome, stop);
    }
    let command = format!("calmix resume {}", shell_quoted(&args.run));
    let outcome = outcome.map_err(|error| explain_moved(error, &recipe, &command));
    show_outcome(outcome, &args.run, stop, |recipe| next_resume(&args.run, recipe, launch))
}

/// Warns that features will be computed again in the run's folder, not in the cache that its recipe names: only the user decides
/// where calmix writes.
fn warn_of_cache(run: &Path, begun: &Recipe, recipe: &Recipe) -> Result<()> {
    let is_other = begun.network.cache != recipe.network.cache;
    if recipe.has_head() && is_other && recipe.network.cache.is_empty() && read::result(run)?.is_none() {
        let features = Paths::new(run).features();
        let cache = cache_option(begun);
        warn(&format!(
            "features are computed again and written to {}, because only you decide where calmix writes; to use the cache \
             that the run's recipe names, add{cache}",
            shown(features.display())
        ));
    }
    Ok(())
}
