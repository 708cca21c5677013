//! A dataset: what it holds and what is wrong with it.

use std::path::Path;

use anyhow::{Context, Result};
use calmix::data::dataset::Dataset;
use calmix::data::prepare::{ClassCount, Report};
use calmix::train::recipe::Data;
use serde_json::Value;

use super::Shown;
use crate::number::typed;
use crate::preparing::prepare_or_stop;
use crate::source::guess;
use crate::stop::Stop;
use crate::terminal::tell;

/// Screens have no more lines.
const MOST: usize = 20;

/// What `calmix prepare` wrote: the table is enough, whether or not the files are here.
pub(super) fn prepared(folder: &Path) -> Result<Shown> {
    let dataset = Dataset::open(folder, folder)?;
    let report = Report::of_table(&dataset)?;
    let next = format!("next: calmix train RECIPE --data FOLDER --prepared {}", typed(folder));
    let text = format!("prepared dataset\n{report}\n\n{}\n{next}\n", listed(&report));
    let mut json = document(folder, &report)?;
    // What could not be read is not in the table.
    json["unreadable"] = Value::Null;
    Ok(Shown { text, json })
}

/// The files themselves: scanned, with the table thrown away.
pub(super) fn raw(folder: &Path) -> Result<Shown> {
    let source = guess(folder);
    tell(&format!("reading {} as {source} …", folder.display()));
    let temp = tempfile::tempdir()?;
    let spec = Data { source, ..Data::default() }.source_spec();
    let report = prepare_or_stop(&spec, folder, &temp.path().join("prepared"), &Stop::listen()?)
        .context("this is neither a run, a checkpoint nor a dataset")?;
    let next = format!("next: calmix prepare {}", typed(folder));
    let text = format!("dataset, {source}\n{report}\n\n{}\n{next}\n", listed(&report));
    let mut json = document(folder, &report)?;
    json["source"] = source.word().into();
    Ok(Shown { text, json })
}

fn document(folder: &Path, report: &Report) -> Result<Value> {
    let mut json = serde_json::to_value(report)?;
    json["kind"] = "dataset".into();
    json["folder"] = folder.display().to_string().into();
    json["source"] = Value::Null;
    Ok(json)
}

fn listed(report: &Report) -> String {
    let classes = &report.classes;
    let longest = classes.iter().map(|class| class.name.chars().count()).max().unwrap_or(0);
    let line = |class: &ClassCount| format!("  {:<longest$}  {}\n", class.name, class.labelled);
    let more = classes.len().saturating_sub(MOST);
    let more = if more > 0 { format!("  and {more} more\n") } else { String::new() };
    format!(
        "labelled images of each class:\n{}{more}",
        classes.iter().take(MOST).map(line).collect::<String>()
    )
}
