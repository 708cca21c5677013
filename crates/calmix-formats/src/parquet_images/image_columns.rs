//! Finds the columns of images, labels and groups in a Parquet file, and the class names in its metadata.

use std::collections::BTreeSet;

use calmix_io::class_names;
use csv::StringRecord;
use parquet::basic::{ConvertedType, Type};
use parquet::file::metadata::ParquetMetaData;
use serde_json::Value;

use crate::error::{FormatError, FormatProblem};
use crate::labels::columns::{
    LabelColumns, embedded_image_column, group_column, is_usual_for_images, label_column,
};
use crate::parquet_file::{Leaf, ParquetFile, check_group_column};

/// The key of Hugging Face's metadata: JSON, which is also in the Arrow schema.
const KEY: &str = "huggingface";

/// The maximum size of metadata, in bytes: enough for a million classes.
const MAX_METADATA_BYTES: usize = 16 << 20;

/// The columns to read.
#[derive(Debug)]
pub struct ImageColumns {
    /// The column of the images.
    pub image: Leaf,
    /// The column of their labels, if any.
    pub label: Option<Leaf>,
    /// The column of their groups, if any.
    pub group: Option<Leaf>,
}

impl ImageColumns {
    /// Finds the columns of a file. With `needs_label`, the user must choose a label column if one is possible.
    ///
    /// # Errors
    /// If no column holds images, several could, labels are not integers, or a column is not inside the file.
    pub fn find(file: &ParquetFile, columns: &LabelColumns, needs_label: bool) -> Result<Self, FormatError> {
        let found = Self::find_in(&file.metadata, columns, needs_label);
        let found = found.map_err(|problem| FormatError::new(&file.path, problem))?;
        let leaves = [Some(&found.image), found.label.as_ref(), found.group.as_ref()].into_iter().flatten();
        file.check_inside(&leaves.map(|leaf| leaf.index).collect::<Vec<_>>())?;
        Ok(found)
    }

    fn find_in(
        metadata: &ParquetMetaData,
        columns: &LabelColumns,
        needs_label: bool,
    ) -> Result<Self, FormatProblem> {
        let mut images = images(metadata, columns.path.as_deref());
        let names: StringRecord = images.iter().map(Leaf::root).collect();
        let image = images.swap_remove(embedded_image_column(&names, columns)?);
        let is_column = |leaf: &Leaf| {
            let description = &leaf.description;
            leaf.index != image.index
                && description.path().parts().len() == 1
                && description.max_rep_level() == 0
        };
        check_group_column(metadata)?;
        let mut others: Vec<Leaf> = Leaf::all(metadata).filter(is_column).collect();
        let names: StringRecord = others.iter().map(Leaf::root).collect();
        let label_at = label_column(&names, columns)?;
        let label = label_at.and_then(|column| others.get(column).cloned());
        // The user may have chosen this column for the labels.
        let group_at = group_column(&names)?.filter(|column| Some(*column) != label_at);
        // This column is then not a label column.
        let group = group_at.map(|column| others.remove(column));
        match &label {
            Some(label) if !is_whole(label) => Err(FormatProblem::Ambiguous {
                what: format!("the column `{}` holds the labels, but not as whole numbers", label.root()),
                readings: vec![
                    "make numbers of names with `dataset.class_encode_column(…)` of Hugging Face's datasets"
                        .into(),
                    "to choose another column, use --label-column NAME".into(),
                ],
            }),
            None if needs_label && others.iter().any(is_whole) => {
                let whole: Vec<&str> =
                    others.iter().filter(|leaf| is_whole(leaf)).take(20).map(Leaf::root).collect();
                Err(FormatProblem::Ambiguous {
                    what: format!(
                        "no column holds the label; columns of whole numbers are: {}",
                        whole.join(", ")
                    ),
                    readings: vec!["if one of them does, use --label-column NAME".into()],
                })
            }
            _ => Ok(Self { image, label, group }),
        }
    }

    /// Returns the class names from Hugging Face's metadata.
    ///
    /// # Errors
    /// If the metadata are not in Hugging Face's format, or two classes share a name.
    pub fn class_names(&self, file: &ParquetFile) -> Result<Option<Vec<String>>, FormatError> {
        let Some(label) = &self.label else { return Ok(None) };
        let pairs = file.metadata.file_metadata().key_value_metadata();
        let text =
            pairs.into_iter().flatten().find(|pair| pair.key == KEY).and_then(|pair| pair.value.as_deref());
        let names = text.map_or(Ok(None), |text| names_in(text, label.root()));
        names.map_err(|problem| {
            let hint = "write it again with Hugging Face's datasets, or without these metadata";
            FormatError::new(&file.path, problem).at(format!("metadata `{KEY}`")).hint(hint)
        })
    }
}

/// Returns whether a file has at least one column of images.
pub fn has_image_column(file: &ParquetFile) -> bool {
    !images(&file.metadata, None).is_empty()
}

/// Lists the columns that can hold images: binary ones that are a struct field `bytes`, or have a usual name or the given
/// one.
fn images(metadata: &ParquetMetaData, named: Option<&str>) -> Vec<Leaf> {
    let is_image = |leaf: &Leaf| {
        let description = &leaf.description;
        let is_binary = description.physical_type() == Type::BYTE_ARRAY
            && description.converted_type() == ConvertedType::NONE
            && description.max_rep_level() == 0;
        let parts = description.path().parts();
        let is_named =
            || named.map_or_else(|| is_usual_for_images(leaf.root()), |named| named == leaf.root());
        is_binary && (matches!(parts, [_, field] if field == "bytes") || (parts.len() == 1 && is_named()))
    };
    Leaf::all(metadata).filter(is_image).collect()
}

/// Returns whether a column holds integers, or the floats into which pandas turns integers with gaps.
fn is_whole(leaf: &Leaf) -> bool {
    matches!(leaf.description.physical_type(), Type::INT32 | Type::INT64 | Type::DOUBLE)
}

fn names_in(text: &str, label: &str) -> Result<Option<Vec<String>>, FormatProblem> {
    if text.len() > MAX_METADATA_BYTES {
        return Err(FormatProblem::Limit(format!(
            "{} bytes, expected at most {MAX_METADATA_BYTES}",
            text.len()
        )));
    }
    let format = |error: serde_json::Error| FormatProblem::Format(error.to_string());
    let metadata: Value = serde_json::from_str(text).map_err(format)?;
    let features = metadata.get("info").and_then(|info| info.get("features"));
    let names = features.and_then(|features| features.get(label)).and_then(|feature| feature.get("names"));
    let Some(names) = names.filter(|names| !names.is_null()) else { return Ok(None) };
    let names = class_names::deserialize(names).map_err(format)?;
    let mut seen = BTreeSet::new();
    for name in &names {
        if name.is_empty() || name.chars().any(char::is_control) || !seen.insert(name) {
            let problem = format!("the class name {name:?} is empty, not printable or there twice");
            return Err(FormatProblem::Content(problem));
        }
    }
    Ok(Some(names).filter(|names| !names.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_names_come_from_the_label_feature() {
        let text = r#"{"info": {"features": {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}"#;
        assert_eq!(names_in(text, "label").unwrap().unwrap(), ["cat", "dog"]);
        assert!(names_in(text, "image").unwrap().is_none() && names_in("{}", "label").unwrap().is_none());
        for bad in [
            "{",
            r#"{"info": {"features": {"label": {"names": ["a", "a"]}}}}"#,
            r#"{"info": {"features": {"label": {"names": ["a", ""]}}}}"#,
            r#"{"info": {"features": {"label": {"names": {"0": "a"}}}}}"#,
            r#"{"info": {"features": {"label": {"names": [1]}}}}"#,
        ] {
            assert!(names_in(bad, "label").is_err(), "{bad}");
        }
    }
}
