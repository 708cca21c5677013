//! A dataset: what it holds and what is wrong with it.

use std::path::Path;

use anyhow::{Context, Result};
use calmix::data::dataset::Dataset;
use calmix::data::prepare::prepare;
use calmix::train::recipe::Data;

use crate::number::typed;
use crate::source::guess;
use crate::terminal::tell;

/// Screens have no more lines.
const MOST: usize = 20;

/// What `calmix prepare` wrote: the table is enough, whether or not the files are here.
pub(super) fn prepared(folder: &Path) -> Result<String> {
    let dataset = Dataset::open(folder, folder)?;
    let header = dataset.header();
    let mut classes: Vec<_> = header.classes.iter().map(|name| (name.as_str(), 0)).collect();
    for record in dataset.records(0..header.samples) {
        let class = record?.1.class();
        if let Some((_, count)) = class.and_then(|class| classes.get_mut(class as usize)) {
            *count += 1;
        }
    }
    let subsets: Vec<_> =
        header.subsets.iter().map(|subset| format!("{} {}", subset.name, subset.count)).collect();
    let fingerprint: String = header.fingerprint.chars().take(12).collect();
    Ok(format!(
        "prepared dataset\ndata: {fingerprint}\n{} samples: {}\n\n{}\nnext: calmix train RECIPE --data FOLDER --prepared {}\n",
        header.samples,
        subsets.join(", "),
        listed(&classes),
        typed(folder)
    ))
}

/// The files themselves: scanned, with the table thrown away.
pub(super) fn raw(folder: &Path) -> Result<String> {
    let source = guess(folder);
    tell(&format!("reading {} as {source} …", folder.display()));
    let temp = tempfile::tempdir()?;
    let spec = Data { source, ..Data::default() }.source_spec();
    let report = prepare(&spec, folder, &temp.path().join("prepared"))
        .context("this is neither a run, a checkpoint nor a dataset")?;
    let classes: Vec<_> = report.classes.iter().map(|class| (class.name.as_str(), class.labelled)).collect();
    Ok(format!(
        "dataset, {source}\n{report}\n\n{}\nnext: calmix prepare {}\n",
        listed(&classes),
        typed(folder)
    ))
}

fn listed(classes: &[(&str, u64)]) -> String {
    let longest = classes.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(name, count): &(&str, u64)| format!("  {name:<longest$}  {count}\n");
    let more = classes.len().saturating_sub(MOST);
    let more = if more > 0 { format!("  and {more} more\n") } else { String::new() };
    format!(
        "labelled images of each class:\n{}{more}",
        classes.iter().take(MOST).map(line).collect::<String>()
    )
}
