//! The keys of a recipe that a prepared dataset decides: how its files are read, and which splits a run uses.

use std::path::Path;

use calmix_data::dataset::Dataset;
use calmix_data::prepare::SourceStamp;
use calmix_data::source::labels_csv::Unlisted;
use calmix_data::source::{FolderLayout, SourceSpec};
use calmix_recipe::{LayoutName, Recipe, Resolved, SourceName};
use toml::Value;

use crate::start_context::{InsteadOfTest, StartNotice};

/// Returns the keys with which `prepared` was read, so that `train --prepared` needs no option of `prepare` again; `None` for a
/// published dataset, or if the stamp does not record them.
pub(super) fn source_settings(prepared: &Path) -> Option<Vec<(&'static str, Value)>> {
    match SourceStamp::read(prepared).ok()??.source {
        SourceSpec::Folder { layout, shrink, groups } => {
            let layout = match layout {
                FolderLayout::Auto => LayoutName::Auto,
                FolderLayout::Classes => LayoutName::Classes,
                FolderLayout::Splits => LayoutName::Splits,
                FolderLayout::Nested => LayoutName::Nested,
            };
            Some(vec![
                source(SourceName::Folder),
                ("dataset.layout", Value::String(layout.word().to_owned())),
                ("dataset.shrink", Value::Integer(shrink.into())),
                ("dataset.groups", Value::Integer(groups.into())),
            ])
        }
        SourceSpec::LabelsCsv { unlisted, columns, shrink } => Some(vec![
            source(SourceName::LabelsCsv),
            ("dataset.path_column", Value::String(columns.path.unwrap_or_default())),
            ("dataset.label_column", Value::String(columns.label.unwrap_or_default())),
            ("dataset.unlabelled", Value::Boolean(unlisted == Unlisted::Unlabelled)),
            ("dataset.shrink", Value::Integer(shrink.into())),
        ]),
        SourceSpec::Webdataset { unlabelled } => {
            Some(vec![source(SourceName::Webdataset), ("dataset.unlabelled", Value::Boolean(unlabelled))])
        }
        SourceSpec::Parquet { columns } => Some(vec![
            source(SourceName::Parquet),
            ("dataset.path_column", Value::String(columns.path.unwrap_or_default())),
            ("dataset.label_column", Value::String(columns.label.unwrap_or_default())),
        ]),
        SourceSpec::Vectors { labels, more_features, vector_column, columns } => Some(vec![
            source(SourceName::Vectors),
            ("dataset.more_features", Value::Array(more_features.into_iter().map(Value::String).collect())),
            ("dataset.labels", Value::String(labels.unwrap_or_default())),
            ("dataset.vector_column", Value::String(vector_column.unwrap_or_default())),
            ("dataset.path_column", Value::String(columns.path.unwrap_or_default())),
            ("dataset.label_column", Value::String(columns.label.unwrap_or_default())),
        ]),
        _ => None,
    }
}

fn source(source: SourceName) -> (&'static str, Value) {
    ("dataset.source", Value::String(source.to_string()))
}

/// Chooses the splits to evaluate on and to train on without labels, unless the user sets them. Changes `recipe` too, since the
/// split of the labels depends on them.
pub(super) fn choose_splits(
    resolved: &Resolved,
    recipe: &mut Recipe,
    dataset: &Dataset,
    notify: &mut dyn FnMut(StartNotice<'_>),
) -> Vec<(&'static str, Value)> {
    let has = |name: &str| dataset.header().subsets.iter().any(|subset| subset.name == name);
    let mut decided = Vec::new();
    if !has("test") && !resolved.is_set_by_user("dataset.test") {
        let evaluated_on = if has("val") {
            InsteadOfTest::ValidationSplit
        } else if recipe.has_head() {
            InsteadOfTest::OutOfFold
        } else {
            InsteadOfTest::HeldOut
        };
        notify(StartNotice::NoTestSplit { evaluated_on });
        recipe.dataset.test.clear();
        decided.push(("dataset.test", Value::String(String::new())));
    }
    let names: Vec<String> =
        ["train", "unlabelled"].into_iter().filter(|name| has(name)).map(str::to_owned).collect();
    if !resolved.is_set_by_user("labels.unlabelled_from") {
        recipe.labels.unlabelled_from.clone_from(&names);
    }
    let names = names.into_iter().map(Value::String).collect();
    decided.push(("labels.unlabelled_from", Value::Array(names)));
    decided
}
