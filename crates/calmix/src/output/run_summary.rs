//! The summary of a run before it starts: data, network, method, training.

use std::path::Path;

use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_data::split::SplitCounts;
use calmix_io::shown::shown;
use calmix_lifecycle::run_samples::VectorShape;
use calmix_lifecycle::splits::own_validation;
use calmix_lifecycle::start::PreparedRun;
use calmix_recipe::network::layout::Layout;
use calmix_recipe::{NetworkSection, Recipe, Resolved};

use crate::output::format::{counted, grouped, short_hash};

/// Describes the run that is about to start, line by line. `device` is the device with threads and precision.
pub fn summary(name: &str, prepared: &PreparedRun, device: &str) -> Result<String> {
    let PreparedRun { resolved, dataset, split, folder, .. } = prepared;
    let recipe = &resolved.recipe;
    let samples = if recipe.has_vectors() { "vectors" } else { "images" };
    let network = network(resolved, dataset)?;
    let counts = split.counts(dataset)?;
    let validation = own_validation(recipe, dataset).map_or(counts.validation, |own| own.end - own.start);
    let test = match recipe.dataset.test.as_str() {
        "" => 0,
        name => dataset.subset(name).map(|ids| ids.end - ids.start)?,
    };
    let train = &recipe.train;
    let unlabelled = recipe.unlabelled_samples(counts.unlabelled);
    let word = |key| resolved.value(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
    let about = if recipe.description.is_empty() {
        String::new()
    } else {
        format!(": {}", shown(&recipe.description))
    };
    let listed = if split.is_listed() {
        format!(" (listed in {})", shown(&recipe.labels.unlabelled_file))
    } else {
        String::new()
    };
    let unlabelled_line = unlabelled_line(&counts, unlabelled, samples);
    let fingerprint = short_hash(dataset.fingerprint());
    let training = if recipe.has_one_vector() {
        "method    logistic regression, EM or their average, chosen by out-of-fold NLL\n\
         training  at once, without steps"
            .to_owned()
    } else {
        format!(
            "method    {} with {}\n\
             training  {} of {} + {} {samples}",
            word("method.base"),
            word("method.mixup.pairing"),
            counted(train.steps, "step"),
            train.batch,
            recipe.unlabelled(),
        )
    };
    Ok(format!(
        "recipe    {name}{about}\n\
         data      {} ({fingerprint}), {}\n\
         \x20         {}, {} unlabelled{listed}, {} validation, {} test\n\
         {unlabelled_line}\
         network   {network}\n\
         {training}; {device}\n\
         run       {} (Ctrl-C is safe; `calmix resume` continues)\n",
        shown(&recipe.dataset.path),
        counted(dataset.classes().len() as u64, "class"),
        labels_in_groups(&counts),
        grouped(unlabelled),
        grouped(validation),
        grouped(test),
        shown(folder.path().display()),
    ))
}

/// Describes the network or head to train in one line, and its weights in further lines.
fn network(resolved: &Resolved, dataset: &Dataset) -> Result<String> {
    let recipe = &resolved.recipe;
    let NetworkSection { name, block, head, weak_views, strong_views, .. } = &recipe.network;
    if recipe.has_vectors() {
        let shape = VectorShape::of(dataset)?;
        let views = match shape.views {
            1 => String::new(),
            _ => format!(": {weak_views} weak and {strong_views} strong views"),
        };
        return Ok(format!("a {head} head on vectors of {} numbers{views}", shape.width));
    }
    let network = if recipe.has_head() {
        let views = match (weak_views, strong_views) {
            (0, 0) => "one clean view".to_owned(),
            _ => format!("{weak_views} weak and {strong_views} strong views"),
        };
        let backbone = match recipe.network.output.as_str() {
            "" => name.to_string(),
            output => format!("ONNX encoder (output {}, {})", shown(output), recipe.network.pooling),
        };
        format!("a {head} head on a frozen {backbone}: {views} of {} pixels", recipe.augment.size)
    } else {
        let parameters = Layout::of_network(*name, *block, dataset.classes().len()).len();
        format!("{name}, {} parameters", grouped(parameters as u64))
    };
    Ok(network + &pretrained(resolved).unwrap_or_default())
}

/// Describes the pretrained weights of a run, the images that they expect, and the origin of each value.
fn pretrained(resolved: &Resolved) -> Option<String> {
    let recipe = &resolved.recipe;
    let network = &recipe.network;
    if network.weights.is_empty() {
        return None;
    }
    let hash = short_hash(&network.weights_hash);
    let channels = |numbers: [f64; 3]| numbers.map(|number| format!("{number:.3}")).join(" ");
    let mean = channels(recipe.dataset.mean);
    let std = channels(recipe.dataset.std);
    let indent = "          ";
    let stride = network.name.has_bottlenecks().then(|| {
        let (stride, origin) = (network.stride, resolved.origin("network.stride"));
        format!("\n{indent}stride in the {stride}: {origin}")
    });
    Some(format!(
        "\nweights   {} ({hash})\n{indent}images of {} pixels: {}\n{indent}mean {mean}: {}\n{indent}std {std}: {}{}",
        shown(&network.weights),
        recipe.augment.size,
        resolved.origin("augment.size"),
        resolved.origin("dataset.mean"),
        resolved.origin("dataset.std"),
        stride.unwrap_or_default(),
    ))
}

/// Formats the number of labels, and of their groups if there are any.
fn labels_in_groups(counts: &SplitCounts) -> String {
    let groups = counts.groups.map(|groups| format!(" in {}", counted(groups, "group")));
    format!("{} labelled{}", grouped(counts.labelled), groups.unwrap_or_default())
}

/// Describes the samples that are trained on without labels, if their number alone is unclear: some are labelled too, or not all
/// are used.
fn unlabelled_line(counts: &SplitCounts, used: u64, samples: &str) -> String {
    let all = counts.unlabelled;
    let labelled = grouped(counts.in_both);
    let which = match all - counts.in_both {
        _ if counts.in_both == 0 => String::new(),
        0 => format!("the {labelled} labelled, without their labels"),
        others => format!("{} others and the {labelled} labelled, without their labels", grouped(others)),
    };
    if used == 0 || (used == all && which.is_empty()) {
        return String::new();
    }
    let line = if used == all {
        which
    } else {
        let which = if which.is_empty() { which } else { format!(" ({which})") };
        let used = grouped(used);
        format!("{used} of {} {samples}{which}; `--set labels.unlabelled_count=0` uses all", grouped(all))
    };
    format!("          unlabelled: {line}\n")
}

/// Announces that a run is resumed. Heads on one vector per sample have no steps.
pub fn resuming(run: &Path, recipe: &Recipe) -> String {
    let run = shown(run.display());
    match recipe.steps() {
        0 => format!("resuming {run}"),
        steps => format!("resuming {run}, {} in total", counted(steps, "step")),
    }
}
