//! The summary of a run before it starts: data, network, method, training; and warnings about them.

use std::path::Path;

use anyhow::Result;
use calmix::core::shown::shown;
use calmix::data::dataset::Dataset;
use calmix::data::prepare::Report;
use calmix::data::split::LabelSplit;
use calmix::engine::device::Device;
use calmix::engine::network::Network;
use calmix::engine::precision::Precision;
use calmix::train::recipe::{Keep, Resolved};
use calmix::train::trainer;

use crate::cores;
use crate::format::{counted, grouped};
use crate::terminal::{status, warn};

/// Warns about the problems that the scan of a dataset found.
pub(crate) fn warn_about_data(report: &Report) {
    for problem in report.unreadable.iter().take(3) {
        warn(&format!("skipped: {problem}"));
    }
    if report.unreadable.len() > 3 {
        let more = report.unreadable.len() - 3;
        warn(&format!("skipped: {more} more; `calmix prepare` lists all"));
    }
    report.warnings.iter().for_each(|warning| warn(&warning.to_string()));
}

/// Warns about a recipe.
pub(crate) fn warn_about_recipe(recipe: &Resolved) {
    recipe.warnings.iter().for_each(|warning| warn(&warning.to_string()));
}

/// Shows the summary.
pub(crate) fn show(
    name: &str,
    resolved: &Resolved,
    dataset: &Dataset,
    run: &Path,
    processes: usize,
) -> Result<()> {
    let recipe = &resolved.recipe;
    let counts = split(resolved, dataset)?.counts(dataset)?;
    let test = match recipe.dataset.test.as_str() {
        "" => 0,
        name => dataset.subset(name).map(|ids| ids.end - ids.start)?,
    };
    let train = &recipe.train;
    let unlabelled = if recipe.unlabelled() > 0 { counts.unlabelled } else { 0 };
    let classes = dataset.classes().len();
    let network = Network::new(recipe.network.name, recipe.network.block, classes);
    let device = train.device.or_else(|| Device::all().first().copied().unwrap_or(Device::Cpu));
    let precision = train.precision.or_else(|| Precision::best(device));
    let each = if processes > 1 { format!(" in each of {processes} processes") } else { String::new() };
    let threads = match device {
        Device::Cpu => {
            format!(", {}{each}", counted(trainer::threads(train.threads, processes).into(), "thread"))
        }
        Device::Cuda(_) | Device::Mps => each,
    };
    let word = |key| resolved.value(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
    let about = if recipe.description.is_empty() {
        String::new()
    } else {
        format!(": {}", shown(&recipe.description))
    };
    let precision = format!("{precision:?}").to_lowercase();
    let fingerprint: String = dataset.fingerprint().chars().take(12).collect();
    status(&format!(
        "recipe    {name}{about}\n\
         data      {} ({fingerprint}), {classes} classes\n\
         \x20         {} labelled, {} unlabelled, {} validation, {} test\n\
         network   {}, {} parameters\n\
         method    {} with {}\n\
         training  {} of {} + {} images; {device}{threads}, {precision}\n\
         run       {} (Ctrl-C is safe; `calmix resume` continues)\n",
        shown(&recipe.dataset.path),
        grouped(counts.labelled),
        grouped(unlabelled),
        grouped(counts.validation),
        grouped(test),
        recipe.network.name,
        grouped(network.layout().len() as u64),
        word("method.base"),
        word("method.mixup.pairing"),
        counted(train.steps, "step"),
        train.batch,
        recipe.unlabelled(),
        shown(run.display()),
    ));
    if device == Device::Cpu {
        let each = trainer::threads(train.threads, processes);
        cores::warn_if_oversubscribed(each.saturating_mul(u32::try_from(processes).unwrap_or(u32::MAX)));
    }
    Ok(())
}

/// The split that the run is going to draw.
fn split(resolved: &Resolved, dataset: &Dataset) -> Result<LabelSplit> {
    let labels = &resolved.recipe.labels;
    if labels.keep == Keep::Given {
        let given = LabelSplit::read(Path::new(&labels.file), dataset)?;
        return Ok(LabelSplit::given(dataset, labels.plan(), given.labelled().to_vec())?);
    }
    Ok(LabelSplit::draw(dataset, labels.plan())?)
}
