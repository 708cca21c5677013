//! A dataset: counts, classes and problems.

use std::path::Path;

use anyhow::{Context, Result};
use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::prepare::{ClassCount, Report, SubsetReport};
use calmix_io::shown::shown;
use calmix_recipe::{Data, detect_source};
use serde_json::Value;

use crate::output::format::shell_quoted;
use crate::output::preparation::prepare_or_stop;
use crate::process::stop::Stop;
use crate::terminal::{Output, status};

/// The maximum number of classes that are listed.
const MAX_LISTED_CLASSES: usize = 20;

/// Inspects a prepared dataset; the dataset itself need not exist.
pub(super) fn prepared(folder: &Path) -> Result<Output> {
    let dataset = Dataset::open(folder, folder)?;
    let report = Report::of_table(&dataset)?;
    let next = format!("next: calmix train RECIPE --data FOLDER --prepared {}", shell_quoted(folder));
    let text = format!("prepared dataset\n{report}\n\n{}\n{next}\n", classes(&report));
    let mut json = document(folder, &report)?;
    // A prepared dataset does not list the samples that could not be read.
    for key in ["left_out", "unreadable"] {
        json[key] = Value::Null;
    }
    Ok(Output { text, json })
}

/// Inspects a dataset that is not prepared: scans it and discards the result.
pub(super) fn raw(folder: &Path) -> Result<Output> {
    let source = detect_source(folder, false);
    status(&format!("reading {} as {source} …", shown(folder.display())));
    let temp = tempfile::tempdir().map_err(|error| DataError::new(std::env::temp_dir(), error))?;
    let spec = Data { source, ..Data::default() }.source_spec();
    let report = prepare_or_stop(&spec, folder, &temp.path().join("prepared"), &Stop::listen()?)
        .context("not a run, a checkpoint or a dataset")?;
    let next = format!("next: calmix prepare {}", shell_quoted(folder));
    let text = format!("dataset, {source}\n{report}\n\n{}\n{next}\n", classes(&report));
    let mut json = document(folder, &report)?;
    json["source"] = source.word().into();
    Ok(Output { text, json })
}

pub(in crate::command) fn document(folder: &Path, report: &Report) -> Result<Value> {
    let mut json = serde_json::to_value(report)?;
    json["kind"] = "dataset".into();
    json["folder"] = folder.display().to_string().into();
    json["source"] = Value::Null;
    Ok(json)
}

fn classes(report: &Report) -> String {
    let classes = &report.classes;
    let longest = classes.iter().map(|class| shown(&class.name).chars().count()).max().unwrap_or(0);
    let counts = |class: &ClassCount| {
        let count = |subset: &SubsetReport| {
            class.subsets.get(&subset.name).map(|count| format!("{} {count}", shown(&subset.name)))
        };
        report.subsets.iter().filter_map(count).collect::<Vec<_>>().join(", ")
    };
    let line = |class: &ClassCount| format!("  {:<longest$}  {}\n", shown(&class.name), counts(class));
    let more = classes.len().saturating_sub(MAX_LISTED_CLASSES);
    let more = if more > 0 { format!("  and {more} more\n") } else { String::new() };
    let samples = report.samples_word();
    format!(
        "labelled {samples} per class:\n{}{more}",
        classes.iter().take(MAX_LISTED_CLASSES).map(line).collect::<String>()
    )
}
