//! A dataset: what it holds and what is wrong with it.

use std::path::Path;

use anyhow::{Context, Result};
use calmix::data::dataset::Dataset;
use calmix::data::prepare::{Report, prepare};
use calmix::train::recipe::Data;

use crate::number::typed;
use crate::source::guess;
use crate::terminal::tell;

/// What `calmix prepare` wrote: the table is enough, whether or not the files are here.
pub(super) fn prepared(folder: &Path) -> Result<String> {
    let report = Report::new(&Dataset::open(folder, folder)?, Vec::new())?;
    Ok(shown("prepared dataset", &report, &format!("calmix train --data FOLDER --prepared {}", typed(folder))))
}

/// The files themselves: scanned, with the table thrown away.
pub(super) fn raw(folder: &Path) -> Result<String> {
    let source = guess(folder);
    tell(&format!("reading {} as {source} …", folder.display()));
    let temp = tempfile::tempdir()?;
    let spec = Data { source, ..Data::default() }.source_spec();
    let report = prepare(&spec, folder, &temp.path().join("prepared"))
        .context("this is neither a run, a checkpoint nor a dataset")?;
    Ok(shown(&format!("dataset, {source}"), &report, &format!("calmix prepare {}", typed(folder))))
}

fn shown(title: &str, report: &Report, next: &str) -> String {
    let longest = report.classes.iter().map(|class| class.name.chars().count()).max().unwrap_or(0);
    let mut classes = String::new();
    /// Screens have no more lines.
    const MOST: usize = 20;
    for class in report.classes.iter().take(MOST) {
        classes += &format!("  {:<longest$}  {}\n", class.name, class.labelled);
    }
    if report.classes.len() > MOST {
        classes += &format!("  and {} more\n", report.classes.len() - MOST);
    }
    format!("{title}\n{report}\n\nlabelled images of each class:\n{classes}\nnext: {next}\n")
}
