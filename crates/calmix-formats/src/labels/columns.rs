//! Which columns of a list name the image, its label and its group.

use csv::StringRecord;
use serde::{Deserialize, Serialize};

use crate::error::{FormatError, FormatProblem};

/// Column names given by the user; without them the usual names are searched for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelColumns {
    /// The column that names the image.
    pub path: Option<String>,
    /// The column that names its class.
    pub label: Option<String>,
}

impl LabelColumns {
    /// Whether a dataset that was prepared with the columns `theirs` is what these ask for.
    pub fn accept(&self, theirs: &Self) -> bool {
        let fits = |ours: &Option<String>, theirs: &Option<String>| ours.is_none() || ours == theirs;
        fits(&self.path, &theirs.path) && fits(&self.label, &theirs.label)
    }
}

/// A column that a list must have.
struct ColumnRole {
    what: &'static str,
    option: &'static str,
    usual: &'static [&'static str],
}

// Compared without case, and without spaces, `_` and `-`.
const IMAGE: ColumnRole = ColumnRole {
    what: "names the image",
    option: "--path-column",
    usual: &[
        "file",
        "filename",
        "filepath",
        "path",
        "image",
        "imagefile",
        "imagename",
        "imagepath",
        "img",
        "imgname",
        "imgpath",
    ],
};
/// Names of columns that identify a row, the first one that is there wins; then those of [`IMAGE`].
const ID: [&str; 7] = ["id", "key", "sampleid", "row", "index", "filenames", "imagepaths"];
const LABEL: ColumnRole = ColumnRole {
    what: "holds the label",
    option: "--label-column",
    usual: &["label", "labels", "labelname", "class", "classname", "category", "categoryname", "target"],
};

const EMBEDDED: ColumnRole =
    ColumnRole { what: "holds the image", option: "--path-column", usual: &["image", "img"] };

/// The column that identifies the rows of a table of vectors or of their labels, if there is one.
///
/// # Errors
/// If the column that the user names is not there.
pub fn id_column(header: &StringRecord, columns: &LabelColumns) -> Result<Option<usize>, FormatProblem> {
    if columns.path.is_some() {
        return find_one(header, columns.path.as_deref(), &IMAGE).map(Some);
    }
    let position = |usual: &&str| header.iter().position(|name| simplified(name) == **usual);
    Ok(ID.iter().chain(IMAGE.usual).find_map(position))
}

/// The column that holds the labels of a table of vectors, if there is one.
///
/// # Errors
/// If the column that the user names is not there, or several have usual names.
pub fn label_column(header: &StringRecord, columns: &LabelColumns) -> Result<Option<usize>, FormatProblem> {
    if columns.label.is_none() && usual(header, &LABEL).is_empty() {
        return Ok(None);
    }
    find_one(header, columns.label.as_deref(), &LABEL).map(Some)
}

/// The column that names the group of a sample, if there is one.
///
/// # Errors
/// If there are two.
pub fn group_column(header: &StringRecord) -> Result<Option<usize>, FormatProblem> {
    let mut columns = (0..header.len()).filter(|&column| is_group(&header[column]));
    let first = columns.next();
    if let (Some(first), Some(second)) = (first, columns.next()) {
        let [first, second] = [first, second].map(|column| header[column].trim());
        return Err(FormatProblem::Content(format!(
            "`{first}` and `{second}` both name the group; keep one"
        )));
    }
    Ok(first)
}

/// Whether a column of this name holds groups.
pub fn is_group(name: &str) -> bool {
    simplified(name) == "group"
}

/// The column that holds the images themselves, among the columns of bytes of a table.
///
/// # Errors
/// If there is none, the column that the user names is not there, or several could be it.
pub fn embedded_image_column(header: &StringRecord, columns: &LabelColumns) -> Result<usize, FormatProblem> {
    let has_usual = !usual(header, &EMBEDDED).is_empty();
    match (&columns.path, header.len()) {
        (None, 1) => Ok(0),
        (None, 0) => {
            let problem = "it has no column of images: of bytes, or of a struct with a field `bytes`";
            Err(FormatProblem::Content(problem.into()))
        }
        (None, _) if !has_usual => {
            let all = header.iter().collect::<Vec<_>>().join(", ");
            let readings = vec![format!("to choose one, use {} NAME", EMBEDDED.option)];
            Err(FormatProblem::Ambiguous {
                what: format!("several columns could hold the image: {all}"),
                readings,
            })
        }
        (named, _) => find_one(header, named.as_deref(), &EMBEDDED),
    }
}

/// Whether a column of this name usually holds images.
pub fn is_usual_for_images(name: &str) -> bool {
    EMBEDDED.usual.contains(&simplified(name).as_str())
}

/// The columns of a list that are read.
#[derive(Debug, Clone, Copy)]
pub struct ListColumns {
    /// The column that names the image.
    pub path: usize,
    /// The column that holds its label.
    pub label: usize,
    /// The column that names its group, if there is one.
    pub group: Option<usize>,
}

/// The positions of the columns in the header of a list; `at` adds the line to an error.
///
/// # Errors
/// If one of them is missing, or several have usual names.
pub fn find(
    header: &StringRecord,
    columns: &LabelColumns,
    at: &impl Fn(FormatProblem) -> FormatError,
) -> Result<ListColumns, FormatError> {
    check_separator(header, at)?;
    let path = find_one(header, columns.path.as_deref(), &IMAGE).map_err(at)?;
    let label = find_one(header, columns.label.as_deref(), &LABEL).map_err(at)?;
    // The user may have named it as one of the other columns.
    let group = group_column(header).map_err(at)?.filter(|&group| group != label && group != path);
    Ok(ListColumns { path, label, group })
}

/// Refuses a header whose columns are not separated by commas.
///
/// # Errors
/// If they are separated by another character.
pub fn check_separator(
    header: &StringRecord,
    at: &impl Fn(FormatProblem) -> FormatError,
) -> Result<(), FormatError> {
    // Excel separates with semicolons in locales where the comma is the decimal sign.
    let joined = header.iter().next().filter(|_| header.len() == 1).unwrap_or_default();
    let Some(separator) = [';', '\t', '|'].into_iter().find(|&separator| joined.contains(separator)) else {
        return Ok(());
    };
    let problem = FormatProblem::Content(format!("columns are separated by {separator:?}"));
    Err(at(problem).hint("separate them with commas"))
}

/// Whether a header names both columns by usual names.
pub fn has_image_and_label(header: &StringRecord) -> bool {
    [IMAGE, LABEL].iter().all(|wanted| !usual(header, wanted).is_empty())
}

fn usual(header: &StringRecord, wanted: &ColumnRole) -> Vec<usize> {
    let is_usual = |name: &str| wanted.usual.contains(&simplified(name).as_str());
    (0..header.len()).filter(|&column| is_usual(&header[column])).collect()
}

/// A name as usual names are compared.
pub fn simplified(name: &str) -> String {
    let name: String = name.chars().filter(|c| !" _-".contains(*c)).collect();
    name.to_lowercase()
}

fn find_one(header: &StringRecord, named: Option<&str>, wanted: &ColumnRole) -> Result<usize, FormatProblem> {
    let all = || header.iter().collect::<Vec<_>>().join(", ");
    let ColumnRole { what, option, .. } = wanted;
    if let Some(named) = named {
        let column = header.iter().position(|name| name.trim() == named);
        let what = format!("there is no column `{named}`; the columns are: {}", all());
        return column.ok_or(FormatProblem::Ambiguous {
            what,
            readings: vec![format!("to choose one, use {option} NAME")],
        });
    }
    match usual(header, wanted).as_slice() {
        [column] => Ok(*column),
        [] => {
            let what = format!("no column {what}; the columns are: {}", all());
            let usual = wanted.usual.iter().take(4).copied().collect::<Vec<_>>().join(", ");
            let readings = vec![
                format!("if one of them does, use {option} NAME"),
                format!("if the header line is missing, add one with the column names ({usual}, …)"),
            ];
            Err(FormatProblem::Ambiguous { what, readings })
        }
        several => {
            let names: Vec<&str> = several.iter().map(|&column| header[column].trim()).collect();
            let could = what.replacen("names", "name", 1).replacen("holds", "hold", 1);
            let what = format!("{} could each {could}", names.join(", "));
            let readings = names.iter().map(|name| format!("to choose it, use {option} {name}")).collect();
            Err(FormatProblem::Ambiguous { what, readings })
        }
    }
}
