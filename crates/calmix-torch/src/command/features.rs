//! `calmix train --features-only`: computes the features of a frozen backbone for later runs.

use std::path::Path;

use anyhow::Result;
use calmix::data::dataset::Dataset;
use calmix::data::default_place::default_table;
use calmix::error::CliError;
use calmix::exit::Exit;
use calmix::format::shell_quoted;
use calmix::input_shard::InputShard;
use calmix::notice_printer::NoticePrinter;
use calmix::progress::ProgressSink;
use calmix::recipe::Resolved;
use calmix::stop::Stop;
use calmix::terminal::{clear_line, status, warn_at_once};
use calmix_train::start::Draft;
use calmix_train::trainer::{PageShard, TrainError, Trainer};

use crate::start_notice::start_context;

/// Opens the prepared table of a recipe's dataset, which must exist: several processes must not prepare it at once.
fn prepared(resolved: &Resolved) -> Result<Dataset> {
    let recipe = &resolved.recipe;
    if !recipe.has_head() {
        let message = "there are no features to compute: network.train is not \"head\"";
        return Err(CliError::invalid(message).hint("`calmix train head-folder` trains a head").into());
    }
    let root = Path::new(&recipe.dataset.path);
    let table = match recipe.dataset.prepared.as_str() {
        "" => default_table(root),
        table => table.into(),
    };
    if !table.exists() {
        let message = "the dataset is not prepared yet; prepare it first, because several processes cannot do it at once";
        let hint = format!("calmix prepare {}", shell_quoted(root));
        return Err(CliError::invalid(message).hint(hint).into());
    }
    Ok(Dataset::open(&table, root)?)
}

/// Refuses to choose a backbone: each process would measure another rate and could choose another backbone.
fn refuse_choice() -> Result<Exit> {
    let message =
        "several processes share the features, so calmix cannot choose the backbone; set it yourself";
    let hint =
        "--set network.weights=NAME --set augment.size=160, with a name that `calmix weights list` shows";
    Err(CliError::invalid(message).hint(hint).into())
}

/// The pages of the cache that a shard makes.
fn pages(shard: InputShard) -> PageShard {
    let (index, of) = shard.place();
    PageShard { index, of }
}

/// Computes the features of a recipe, or this process's part of them.
pub(super) fn make_features(shard: Option<InputShard>, mut draft: Draft, is_quiet: bool) -> Result<Exit> {
    let stop = Stop::listen()?;
    let dataset = prepared(&draft.resolved)?;
    draft.use_table(dataset.folder());
    let mut printer = NoticePrinter::new(is_quiet, "image");
    let completed = draft.complete(&dataset, &mut start_context(&mut printer, &stop))?;
    let resolved = completed.resolved;
    if completed.backbone.is_some() && shard.is_some() {
        return refuse_choice();
    }
    let part = shard.map_or(PageShard::WHOLE, pages);
    let stop = stop.announced();
    let progress = ProgressSink::new(&resolved.recipe, is_quiet);
    let trainer = Trainer::new(stop.flag()).warning(warn_at_once).sink(progress);
    // Finished pages are in the cache.
    let made = stop.ending_soon(clear_line, || trainer.make_features(&resolved, part));
    clear_line();
    match made {
        Err(TrainError::Abandoned) => return Ok(stop.exit()),
        made => made?,
    }
    if !is_quiet {
        status(&format!("the features are in {}", calmix::io::shown::shown(&resolved.recipe.network.cache)));
    }
    Ok(Exit::Done)
}
