//! Prepares a dataset, with progress and unless a signal comes first.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use calmix_data::prepare::{Report, prepare_table};
use calmix_data::source::SourceSpec;

use crate::error::PreparationStopped;
use crate::process::stop::Stop;
use crate::terminal::rate::Rate;
use crate::terminal::{clear_line, warn_at_once};

/// Prepares the files below `root` into `target`, unless a signal comes first.
pub(crate) fn prepare_or_stop(
    source: &SourceSpec,
    root: &Path,
    target: &Path,
    stop: &Stop,
) -> Result<Report> {
    let what = if matches!(source, SourceSpec::Vectors { .. }) { "vector" } else { "image" };
    let mut rate = Rate::of_silent_command(what);
    let progress = |files, total| rate.show(files, total);
    let report = prepare_table(source, root, target, stop.flag(), Arc::new(warn_at_once), progress);
    clear_line();
    report?.ok_or_else(|| PreparationStopped.into())
}
