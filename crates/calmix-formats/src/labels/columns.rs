//! The columns of a list that name the image, its label and its group.

use csv::StringRecord;
use serde::{Deserialize, Serialize};

use crate::error::{FormatError, FormatProblem};

/// Column names given by the user; without them, the usual names are searched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelColumns {
    /// The column of the image's path.
    pub path: Option<String>,
    /// The column of its class.
    pub label: Option<String>,
}

impl LabelColumns {
    /// Returns whether a dataset prepared with the columns `theirs` satisfies this request.
    pub fn accept(&self, theirs: &Self) -> bool {
        let fits = |ours: &Option<String>, theirs: &Option<String>| ours.is_none() || ours == theirs;
        fits(&self.path, &theirs.path) && fits(&self.label, &theirs.label)
    }
}

/// A required column of a list.
struct ColumnRole {
    what: &'static str,
    option: &'static str,
    usual: &'static [&'static str],
}

// Compared without case, spaces, `_` and `-`.
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
/// Names of id columns in order of precedence, followed by those of [`IMAGE`].
const ID: [&str; 7] = ["id", "key", "sampleid", "row", "index", "filenames", "imagepaths"];
const LABEL: ColumnRole = ColumnRole {
    what: "holds the label",
    option: "--label-column",
    usual: &["label", "labels", "labelname", "class", "classname", "category", "categoryname", "target"],
};

const EMBEDDED: ColumnRole =
    ColumnRole { what: "holds the image", option: "--path-column", usual: &["image", "img"] };

/// Finds the id column of a table of vectors or of their labels, if any.
///
/// # Errors
/// If the user named a column that does not exist.
pub fn id_column(header: &StringRecord, columns: &LabelColumns) -> Result<Option<usize>, FormatProblem> {
    if columns.path.is_some() {
        return find_one(header, columns.path.as_deref(), &IMAGE).map(Some);
    }
    let position = |usual: &&str| header.iter().position(|name| simplified(name) == **usual);
    Ok(ID.iter().chain(IMAGE.usual).find_map(position))
}

/// Finds the label column of a table of vectors, if any.
///
/// # Errors
/// If the user named a column that does not exist, or several have usual names.
pub fn label_column(header: &StringRecord, columns: &LabelColumns) -> Result<Option<usize>, FormatProblem> {
    if columns.label.is_none() && usual(header, &LABEL).is_empty() {
        return Ok(None);
    }
    find_one(header, columns.label.as_deref(), &LABEL).map(Some)
}

/// Finds the group column, if any.
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

/// Finds the column that says how each label was [drawn](super::drawn), if any.
pub fn drawn_column(header: &StringRecord) -> Option<usize> {
    header.iter().position(|name| simplified(name) == "drawn")
}

/// Finds the column of the [weight](super::weight) of each label, if any.
pub fn weight_column(header: &StringRecord) -> Option<usize> {
    let is_weight = |name: &str| ["weight", "sampleweight"].contains(&simplified(name).as_str());
    header.iter().position(is_weight)
}

/// Returns whether a column with this name holds groups.
pub fn is_group(name: &str) -> bool {
    simplified(name) == "group"
}

/// Finds the column of encoded images among the binary columns of a table.
///
/// # Errors
/// If there is none, the user named a column that does not exist, or several are possible.
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

/// Returns whether a column with this name usually holds images.
pub fn is_usual_for_images(name: &str) -> bool {
    EMBEDDED.usual.contains(&simplified(name).as_str())
}

/// The columns of a list to read.
#[derive(Debug, Clone, Copy)]
pub struct ListColumns {
    /// The index of the column of image paths.
    pub path: usize,
    /// The index of the column of labels.
    pub label: usize,
    /// The index of the column of groups, if any.
    pub group: Option<usize>,
    /// The index of the column of draws, if any.
    pub drawn: Option<usize>,
    /// The index of the column of weights, if any.
    pub weight: Option<usize>,
}

/// Finds the columns in the header of a list; `at` adds the line to an error.
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
    // The user may have assigned these columns another role.
    let is_free = |column: &usize| *column != label && *column != path;
    let group = group_column(header).map_err(at)?.filter(is_free);
    let drawn = drawn_column(header).filter(is_free);
    let weight = weight_column(header).filter(is_free);
    Ok(ListColumns { path, label, group, drawn, weight })
}

/// The columns of a list of labels of vectors.
#[derive(Debug, Clone, Copy)]
pub struct VectorListColumns {
    /// The index of the column of ids; `None` if the lines are in the order of the rows.
    pub id: Option<usize>,
    /// The index of the column of labels.
    pub label: usize,
    /// The index of the column of splits, if any.
    pub split: Option<usize>,
    /// The index of the column of groups, if any.
    pub group: Option<usize>,
    /// The index of the column of draws, if any.
    pub drawn: Option<usize>,
    /// The index of the column of weights, if any.
    pub weight: Option<usize>,
    /// Whether the only column does not have a usual name: its header may be the first label.
    pub is_unusual: bool,
}

/// Finds the columns in the header of a list of labels of vectors; `at` adds the line to an error.
///
/// # Errors
/// If there is no column of labels, or several have usual names.
pub fn find_for_vectors(
    header: &StringRecord,
    columns: &LabelColumns,
    at: &impl Fn(FormatProblem) -> FormatError,
) -> Result<VectorListColumns, FormatError> {
    check_separator(header, at)?;
    let id = id_column(header, columns).map_err(at)?;
    let named = label_column(header, columns).map_err(at)?;
    // A list with a single column holds labels, whatever its header says.
    let is_unusual = header.len() == 1 && named.is_none();
    let Some(label) = named.or(is_unusual.then_some(0)) else {
        let all = header.iter().collect::<Vec<_>>().join(", ");
        return Err(at(FormatProblem::Ambiguous {
            what: format!("no column holds the label; the columns are: {all}"),
            readings: vec![
                "if one of them does, use --label-column NAME".into(),
                "if the header line is missing, add it, such as id,label".into(),
            ],
        }));
    };
    let id = id.filter(|&id| id != label);
    // The user may have assigned these columns another role.
    let is_free = |column: &usize| *column != label && Some(*column) != id;
    let group = group_column(header).map_err(at)?.filter(is_free);
    let drawn = drawn_column(header).filter(is_free);
    let weight = weight_column(header).filter(is_free);
    let split = header.iter().position(|name| simplified(name) == "split");
    Ok(VectorListColumns { id, label, split, group, drawn, weight, is_unusual })
}

/// Refuses a header whose columns are not separated by commas.
pub fn check_separator(
    header: &StringRecord,
    at: &impl Fn(FormatProblem) -> FormatError,
) -> Result<(), FormatError> {
    // Excel separates with semicolons in locales with a decimal comma.
    let joined = header.iter().next().filter(|_| header.len() == 1).unwrap_or_default();
    let Some(separator) = [';', '\t', '|'].into_iter().find(|&separator| joined.contains(separator)) else {
        return Ok(());
    };
    let problem = FormatProblem::Content(format!("columns are separated by {separator:?}"));
    Err(at(problem).hint("separate them with commas"))
}

/// Returns whether a header has usual names for both columns.
pub fn has_image_and_label(header: &StringRecord) -> bool {
    [IMAGE, LABEL].iter().all(|wanted| !usual(header, wanted).is_empty())
}

fn usual(header: &StringRecord, wanted: &ColumnRole) -> Vec<usize> {
    let is_usual = |name: &str| wanted.usual.contains(&simplified(name).as_str());
    (0..header.len()).filter(|&column| is_usual(&header[column])).collect()
}

/// Normalises a name for comparison with usual names.
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
