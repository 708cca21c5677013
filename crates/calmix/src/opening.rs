//! What a run is about to do, for the person who started it.

use std::path::Path;

use anyhow::Result;
use calmix::data::dataset::Dataset;
use calmix::data::prepare::Report;
use calmix::data::split::Split;
use calmix::engine::device::Device;
use calmix::engine::network::Network;
use calmix::engine::precision::Precision;
use calmix::train::recipe::{Keep, Resolved};
use calmix::train::trainer;

use crate::cores;
use crate::number::{counted, grouped};
use crate::terminal::{tell, warn};

/// Tells what the scan of a dataset found.
pub(crate) fn found(report: &Report) {
    for bad in report.unreadable.iter().take(3) {
        warn(&format!("left out: {bad}"));
    }
    if report.unreadable.len() > 3 {
        let more = report.unreadable.len() - 3;
        warn(&format!("left out: {more} more; `calmix prepare` lists them"));
    }
    report.warnings.iter().for_each(|warning| warn(&warning.to_string()));
}

/// What is odd about a recipe.
pub(crate) fn odd(recipe: &Resolved) {
    recipe.warnings.iter().for_each(|warning| warn(&warning.to_string()));
}

/// Tells what is about to be learnt from what, and how.
pub(crate) fn tell_about(
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
    let about =
        if recipe.description.is_empty() { String::new() } else { format!(": {}", recipe.description) };
    let precision = format!("{precision:?}").to_lowercase();
    let fingerprint: String = dataset.fingerprint().chars().take(12).collect();
    tell(&format!(
        "recipe    {name}{about}\n\
         data      {} ({fingerprint}), {classes} classes\n\
         \x20         {} labelled, {} unlabelled, {} validation, {} test\n\
         network   {}, {} parameters\n\
         method    {} with {}\n\
         training  {} of {} + {} images; {device}{threads}, {precision}\n\
         run       {} (Ctrl-C is safe: `calmix resume` goes on)\n",
        recipe.dataset.path,
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
        run.display(),
    ));
    if device == Device::Cpu {
        let each = trainer::threads(train.threads, processes);
        cores::warn_if_crowded(each.saturating_mul(u32::try_from(processes).unwrap_or(u32::MAX)));
    }
    Ok(())
}

/// The split that the run will draw.
fn split(resolved: &Resolved, dataset: &Dataset) -> Result<Split> {
    let labels = &resolved.recipe.labels;
    if labels.keep == Keep::Given {
        let given = Split::read(Path::new(&labels.file), dataset)?;
        return Ok(Split::given(dataset, labels.plan(), given.labelled().to_vec())?);
    }
    Ok(Split::draw(dataset, labels.plan())?)
}
