//! `calmix train --features-only`: computes the features of a frozen backbone for later runs.

use std::path::Path;

use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_data::default_place::default_table;
use calmix_heads::HeadsError;
use calmix_heads::images::feature_work::PageShard;
use calmix_heads::trainer;
use calmix_io::shown::shown;
use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::start::Draft;
use calmix_recipe::Resolved;

use crate::error::CliError;
use crate::error::exit::Exit;
use crate::output::format::shell_quoted;
use crate::output::notice_printer::NoticePrinter;
use crate::output::start_notice::start_context;
use crate::process::input_shard::InputShard;
use crate::process::stop::Stop;
use crate::terminal::progress::ProgressSink;
use crate::terminal::{clear_line, status, warn_at_once};

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
    let part = shard.map_or(PageShard::WHOLE, pages);
    let stop = stop.announced();
    let progress = ProgressSink::new(&resolved.recipe, is_quiet);
    let request = RunRequest::new(stop.flag()).warning(warn_at_once).sink(progress);
    // Finished pages are in the cache.
    let made = stop.ending_soon(clear_line, || trainer::make_features(request, &resolved, part));
    clear_line();
    match made {
        Err(HeadsError::Stopped) => return Ok(stop.exit()),
        made => made?,
    }
    if !is_quiet {
        status(&format!("the features are in {}", shown(&resolved.recipe.network.cache)));
    }
    Ok(Exit::Done)
}
