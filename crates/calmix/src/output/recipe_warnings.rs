//! Warnings about a recipe and about its labels.

use calmix_data::dataset::Dataset;
use calmix_data::split::LabelSplit;
use calmix_io::shown::shown;
use calmix_recipe::{Keep, Labels, Resolved};

use crate::terminal::warn;

/// Warns about a recipe.
pub fn warn_about_recipe(recipe: &Resolved) {
    recipe.warnings.iter().for_each(|warning| warn(&warning.to_string()));
}

/// A warning about the classes that have fewer labels than requested.
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
