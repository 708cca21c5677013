//! The summary of a run before it starts: data, network, method, training; and warnings about them.

use std::path::Path;

use anyhow::Result;
use calmix::core::pseudo::{AlignmentTarget, Base, SoftMatch};
use calmix::data::dataset::Dataset;
use calmix::data::prepare::Findings;
use calmix::data::split::LabelSplit;
use calmix::format::{counted, grouped};
use calmix::io::shown::shown;
use calmix::recipe::device::Device;
use calmix::recipe::{Augment, NetworkSection, Recipe, Resolved};
use calmix::recipe_warnings::short_labels;
use calmix::terminal::{status, warn};
use calmix_engine::device;
use calmix_engine::network::Network;
use calmix_engine::precision;
use calmix_train::start::PreparedRun;
use calmix_train::trainer::{self, own_validation};

use crate::cores;

/// The most skipped files that are named before training.
const LEFT_OUT: usize = 3;

/// Warns about the problems that the scan of a dataset found; the table in `prepared` lists all of them.
pub(crate) fn warn_about_data(found: &Findings, prepared: &Path) {
    for problem in found.unreadable.iter().take(LEFT_OUT) {
        warn(&format!("skipped: {problem}"));
    }
    if found.left_out() > LEFT_OUT as u64 {
        let more = grouped(found.left_out() - LEFT_OUT as u64);
        let report = prepared.join(Findings::FILE);
        warn(&format!("skipped: {more} more; see {}", shown(report.display())));
    }
    found.warnings.iter().for_each(|warning| warn(warning));
}

/// Warns about a dataset that was scanned before, without naming its files again. If the findings cannot be read, that is
/// only one more warning.
pub(crate) fn warn_again(prepared: &Path) {
    let found = match Findings::read(prepared) {
        Ok(found) => found,
        Err(error) => return warn(&error.to_string()),
    };
    if found.left_out() > 0 {
        let left_out = counted(found.left_out(), "place");
        let report = prepared.join(Findings::FILE);
        warn(&format!("skipped: {left_out}, as before; see {}", shown(report.display())));
    }
    found.warnings.iter().for_each(|warning| warn(warning));
}

/// Warns if classes have fewer labels than the recipe requests, or far fewer than others although the method assumes
/// equally frequent classes.
pub(crate) fn warn_about_labels(prepared: &PreparedRun) -> Result<()> {
    let PreparedRun { resolved, dataset, split, .. } = prepared;
    for sentence in short_labels(&resolved.recipe.labels, split, dataset).into_iter().chain(uneven_labels(
        &resolved.recipe,
        split,
        dataset,
    )?) {
        warn(&sentence);
    }
    Ok(())
}

/// A warning about imbalanced labels, if the method aligns its predictions to equally frequent classes.
fn uneven_labels(recipe: &Recipe, split: &LabelSplit, dataset: &Dataset) -> Result<Option<String>> {
    let Base::SoftMatch(SoftMatch { target: AlignmentTarget::Uniform, .. }) = recipe.method.base else {
        return Ok(None);
    };
    let counts = split.counts(dataset)?.per_class;
    let counts = counts.into_iter().zip(dataset.classes());
    let Some((fewest, rare)) = counts.clone().min() else { return Ok(None) };
    let Some((most, frequent)) = counts.max() else { return Ok(None) };
    // Held-out labels and a total that the classes do not divide leave counts that differ by one.
    if most < (2 * fewest).max(fewest + 2) {
        return Ok(None);
    }
    Ok(Some(format!(
        "`{}` has {} and `{}` has {most}, but softmatch assumes equally frequent classes. If the unlabelled images are as \
         imbalanced, set method.softmatch.target=labelled",
        shown(rare),
        counted(fewest, "label"),
        shown(frequent),
    )))
}

/// Shows the summary, with the number of processes on this machine.
pub(crate) fn show(name: &str, prepared: &PreparedRun, processes: usize) -> Result<()> {
    let PreparedRun { resolved, dataset, split, folder, .. } = prepared;
    let recipe = &resolved.recipe;
    let counts = split.counts(dataset)?;
    let validation = own_validation(recipe, dataset).map_or(counts.validation, |own| own.end - own.start);
    let test = match recipe.dataset.test.as_str() {
        "" => 0,
        name => dataset.subset(name).map(|ids| ids.end - ids.start)?,
    };
    let train = &recipe.train;
    let unlabelled = recipe.unlabelled_samples(counts.unlabelled);
    let classes = dataset.classes().len();
    let device = train.device.or_else(device::fastest);
    let precision = train.precision.or_else(|| precision::best(device));
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
    let weights = pretrained(resolved).unwrap_or_default();
    let fingerprint: String = dataset.fingerprint().chars().take(12).collect();
    status(&format!(
        "recipe    {name}{about}\n\
         data      {} ({fingerprint}), {}\n\
         \x20         {} labelled, {} unlabelled, {} validation, {} test\n\
         network   {}{weights}\n\
         method    {} with {}\n\
         training  {} of {} + {} images; {device}{threads}, {precision}\n\
         run       {} (Ctrl-C is safe; `calmix resume` continues)\n",
        shown(&recipe.dataset.path),
        counted(classes as u64, "class"),
        grouped(counts.labelled),
        grouped(unlabelled),
        grouped(validation),
        grouped(test),
        network(recipe, classes),
        word("method.base"),
        word("method.mixup.pairing"),
        counted(train.steps, "step"),
        train.batch,
        recipe.unlabelled(),
        shown(folder.path().display()),
    ));
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
        return format!(
            "a {head} head on a frozen {name}: {weak_views} weak and {strong_views} strong views of {} pixels",
            recipe.augment.size
        );
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
