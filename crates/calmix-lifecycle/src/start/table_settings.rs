//! How a prepared table was read, as keys of a recipe: `train --prepared` needs no option of `prepare` again.

use std::path::Path;

use calmix_data::prepare::SourceStamp;
use calmix_data::source::labels_csv::Unlisted;
use calmix_data::source::{FolderLayout, SourceSpec};
use calmix_recipe::{LayoutName, SourceName};
use toml::Value;

/// The keys that read a folder as the table was read; `None` for a table of a published dataset, or of a version that did not
/// record it.
pub(super) fn table_settings(table: &Path) -> Option<Vec<(&'static str, Value)>> {
    match SourceStamp::read(table).ok()??.source {
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
        SourceSpec::Vectors { labels, vector_column, columns } => Some(vec![
            source(SourceName::Vectors),
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
