//! The summary of a run before it starts: data, network, method, training.

use std::path::Path;

use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_data::split::{LabelSplit, SplitCounts};
use calmix_io::shown::shown;
use calmix_recipe::{Recipe, Resolved};
use calmix_vectors::splits::own_validation;

use crate::format::{counted, grouped};

/// What is about to be trained.
#[derive(Debug)]
pub struct RunSummary<'a> {
    /// The name of the run.
    pub name: &'a str,
    /// Its recipe.
    pub resolved: &'a Resolved,
    /// Its dataset.
    pub dataset: &'a Dataset,
    /// Which labels it is trained on.
    pub split: &'a LabelSplit,
    /// Its folder.
    pub run: &'a Path,
    /// The network or head, and its weights in lines of their own.
    pub network: String,
    /// The name of the samples: images.
    pub samples: &'static str,
    /// Device, threads and precision.
    pub device: String,
}

impl RunSummary<'_> {
    /// The summary in lines.
    ///
    /// # Errors
    /// If the table of the dataset cannot be read.
    pub fn text(&self) -> Result<String> {
        let Self { name, resolved, dataset, split, run, network, samples, device } = self;
        let recipe = &resolved.recipe;
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
        let fingerprint: String = dataset.fingerprint().chars().take(12).collect();
        let training = if recipe.has_one_vector() {
            "method    logistic regression, EM and their average; the lowest out-of-fold NLL is kept\n\
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
            shown(run.display()),
        ))
    }
}

/// The number of labels, and of the groups that they are in, if any.
fn labels_in_groups(counts: &SplitCounts) -> String {
    let groups = counts.groups.map(|groups| format!(" in {}", counted(groups, "group")));
    format!("{} labelled{}", grouped(counts.labelled), groups.unwrap_or_default())
}

/// A line that says which samples are trained on without labels, if that is not clear from their number: some are labelled
/// too, or not all are used.
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

/// The line that announces that a run is resumed. Heads on one vector per sample have no steps.
pub fn resuming(run: &Path, recipe: &Recipe) -> String {
    let run = shown(run.display());
    match recipe.steps() {
        0 => format!("resuming {run}"),
        steps => format!("resuming {run}, {} in total", counted(steps, "step")),
    }
}
