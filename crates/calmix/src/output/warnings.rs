//! Warnings about a recipe, a dataset and its labels, before a run starts.

use std::path::Path;

use anyhow::Result;
use calmix_core::pseudo::{AlignmentTarget, Base, SoftMatch};
use calmix_data::dataset::Dataset;
use calmix_data::prepare::Findings;
use calmix_data::split::LabelSplit;
use calmix_io::shown::shown;
use calmix_recipe::{Keep, Labels, Recipe, Resolved};

use crate::output::format::{counted, grouped};
use crate::terminal::warn;

/// Warns about a recipe.
pub fn warn_about_recipe(recipe: &Resolved) {
    recipe.warnings.iter().for_each(|warning| warn(&warning.to_string()));
}

/// Returns the warning about classes with fewer labels than requested.
pub fn short_labels(labels: &Labels, split: &LabelSplit, dataset: &Dataset) -> Option<String> {
    if !matches!(labels.keep, Keep::PerClass | Keep::Total) {
        return None;
    }
    let short = split.short();
    let wanted = short.iter().map(|class| class.wanted).max()?;
    let examples = short.iter().take(5).map(|class| format!("`{}` {}", shown(&class.class), class.given));
    let more = if short.len() > 5 { ", …" } else { "" };
    let has = if short.len() == 1 { "has" } else { "have" };
    Some(format!(
        "labels.count requests {wanted} labels per class, but {} of {} classes {has} fewer: {}{more}",
        short.len(),
        dataset.classes().len(),
        examples.collect::<Vec<_>>().join(", "),
    ))
}

/// The maximum number of skipped files that are named before training.
const MAX_NAMED_FILES: usize = 3;

/// Warns about the problems that the scan of a dataset found; the prepared dataset in `prepared` lists all of them.
pub fn warn_about_data(found: &Findings, prepared: &Path) {
    for problem in found.unreadable.iter().take(MAX_NAMED_FILES) {
        warn(&format!("skipped: {problem}"));
    }
    if found.left_out() > MAX_NAMED_FILES as u64 {
        let more = grouped(found.left_out() - MAX_NAMED_FILES as u64);
        let report = prepared.join(Findings::FILE);
        warn(&format!("skipped: {more} more; see {}", shown(report.display())));
    }
    found.warnings.iter().for_each(|warning| warn(warning));
}

/// Warns about a dataset that was scanned earlier, without naming its files again. If the findings cannot be read, it only warns.
pub fn warn_again(prepared: &Path) {
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
pub fn warn_about_labels(recipe: &Recipe, dataset: &Dataset, split: &LabelSplit) -> Result<()> {
    let uneven = imbalance_warning(recipe, split, dataset)?;
    for sentence in short_labels(&recipe.labels, split, dataset).into_iter().chain(uneven) {
        warn(&sentence);
    }
    Ok(())
}

/// Returns the warning about imbalanced labels, if the method assumes equally frequent classes.
fn imbalance_warning(recipe: &Recipe, split: &LabelSplit, dataset: &Dataset) -> Result<Option<String>> {
    let Base::SoftMatch(SoftMatch { target: AlignmentTarget::Uniform, .. }) = recipe.method.base else {
        return Ok(None);
    };
    // With one vector per sample, no head is trained by the method.
    if recipe.has_one_vector() {
        return Ok(None);
    }
    let counts = split.counts(dataset)?.per_class;
    let counts = counts.into_iter().zip(dataset.classes());
    let Some((fewest, rare)) = counts.clone().min() else { return Ok(None) };
    let Some((most, frequent)) = counts.max() else { return Ok(None) };
    // Holding out labels, or a total that is not a multiple of the classes, makes counts differ by one; do not warn about that.
    if most < (2 * fewest).max(fewest + 2) {
        return Ok(None);
    }
    Ok(Some(format!(
        "`{}` has {} and `{}` has {most}, but softmatch assumes equally frequent classes. If the unlabelled samples are as \
         imbalanced, set method.softmatch.target=labelled",
        shown(rare),
        counted(fewest, "label"),
        shown(frequent),
    )))
}
