//! The summary of a run on images before it starts.

use anyhow::Result;
use calmix::cores;
use calmix::format::{counted, grouped};
use calmix::io::shown::shown;
use calmix::recipe::device::Device;
use calmix::recipe::{Augment, NetworkSection, Recipe, Resolved};
use calmix::run_summary::RunSummary;
use calmix::terminal::status;
use calmix_engine::device;
use calmix_engine::network::Network;
use calmix_engine::precision;
use calmix_train::start::PreparedRun;
use calmix_train::trainer;

/// Shows the summary, with the number of processes on this machine.
pub(crate) fn show(name: &str, prepared: &PreparedRun, processes: usize) -> Result<()> {
    let PreparedRun { resolved, dataset, split, folder, .. } = prepared;
    let recipe = &resolved.recipe;
    let train = &recipe.train;
    let device = train.device.or_else(device::fastest);
    let precision = train.precision.or_else(|| precision::best(device));
    let each = if processes > 1 { format!(" in each of {processes} processes") } else { String::new() };
    let threads = match device {
        Device::Cpu => {
            format!(", {}{each}", counted(trainer::threads(train.threads, processes).into(), "thread"))
        }
        Device::Cuda(_) | Device::Mps => each,
    };
    let precision = format!("{precision:?}").to_lowercase();
    let weights = pretrained(resolved).unwrap_or_default();
    let summary = RunSummary {
        name,
        resolved,
        dataset,
        split,
        run: folder.path(),
        network: format!("{}{weights}", network(recipe, dataset.classes().len())),
        samples: "images",
        device: format!("{device}{threads}, {precision}"),
    };
    status(&summary.text()?);
    if device == Device::Cpu {
        let threads = trainer::threads(train.threads, processes);
        cores::warn_if_oversubscribed(threads, processes);
    }
    Ok(())
}

/// Describes the network or head that is trained, in a line.
fn network(recipe: &Recipe, classes: usize) -> String {
    let NetworkSection { name, block, head, weak_views, strong_views, .. } = &recipe.network;
    if recipe.has_head() {
        let views = match (weak_views, strong_views) {
            (0, 0) => "one clean view".to_owned(),
            _ => format!("{weak_views} weak and {strong_views} strong views"),
        };
        return format!("a {head} head on a frozen {name}: {views} of {} pixels", recipe.augment.size);
    }
    let parameters = Network::new(*name, *block, classes).layout().len();
    format!("{name}, {} parameters", grouped(parameters as u64))
}

/// Describes the pretrained weights of a run, the images that they expect, and where each value comes from.
fn pretrained(resolved: &Resolved) -> Option<String> {
    let (network, Augment { size, .. }) = (&resolved.recipe.network, &resolved.recipe.augment);
    if network.weights.is_empty() {
        return None;
    }
    let hash: String = network.weights_hash.chars().take(12).collect();
    let channels = |numbers: [f64; 3]| numbers.map(|number| format!("{number:.3}")).join(" ");
    let (mean, std) = (channels(resolved.recipe.dataset.mean), channels(resolved.recipe.dataset.std));
    let indent = "          ";
    let stride = network.name.has_bottlenecks().then(|| {
        let (stride, origin) = (network.stride, resolved.origin("network.stride"));
        format!("\n{indent}stride in the {stride}: {origin}")
    });
    Some(format!(
        "\nweights   {} ({hash})\n{indent}images of {size} pixels: {}\n{indent}mean {mean}: {}\n{indent}std {std}: {}{}",
        shown(&network.weights),
        resolved.origin("augment.size"),
        resolved.origin("dataset.mean"),
        resolved.origin("dataset.std"),
        stride.unwrap_or_default(),
    ))
}
