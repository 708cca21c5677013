//! Which columns of a list name the image and its label.

use csv::StringRecord;
use serde::{Deserialize, Serialize};

use crate::error::{DataError, DataProblem};

/// Names of columns that the user gives; without them the usual names are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelColumns {
    /// The column that names the image.
    pub path: Option<String>,
    /// The column that names its class.
    pub label: Option<String>,
}

/// A column that a list must have.
struct Wanted {
    what: &'static str,
    option: &'static str,
    usual: &'static [&'static str],
}

// Compared without case, and without spaces, `_` and `-`.
const IMAGE: Wanted = Wanted {
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
const LABEL: Wanted = Wanted {
    what: "holds the label",
    option: "--label-column",
    usual: &["label", "labels", "labelname", "class", "classname", "category", "categoryname", "target"],
};

/// Which fields hold the image and its label, by the header of a list; `at` makes an error of its line.
pub(super) fn find(
    header: &StringRecord,
    columns: &LabelColumns,
    at: &impl Fn(DataProblem) -> DataError,
) -> Result<(usize, usize), DataError> {
    // Excel in half of the world's languages separates by semicolons.
    let joined = header.iter().next().filter(|_| header.len() == 1).unwrap_or_default();
    if let Some(separator) = [';', '\t', '|'].into_iter().find(|&separator| joined.contains(separator)) {
        let problem = DataProblem::Content(format!("columns are separated by {separator:?}"));
        return Err(at(problem).hint("separate them by commas"));
    }
    let path = find_one(header, columns.path.as_deref(), &IMAGE).map_err(at)?;
    let label = find_one(header, columns.label.as_deref(), &LABEL).map_err(at)?;
    Ok((path, label))
}

/// Whether a header names both columns by usual names.
pub(super) fn has_both(header: &StringRecord) -> bool {
    [IMAGE, LABEL].iter().all(|wanted| !usual(header, wanted).is_empty())
}

fn usual(header: &StringRecord, wanted: &Wanted) -> Vec<usize> {
    let is_usual = |name: &str| {
        let name: String = name.chars().filter(|c| !" _-".contains(*c)).collect();
        wanted.usual.contains(&name.to_lowercase().as_str())
    };
    (0..header.len()).filter(|&column| is_usual(&header[column])).collect()
}

fn find_one(header: &StringRecord, named: Option<&str>, wanted: &Wanted) -> Result<usize, DataProblem> {
    let all = || header.iter().collect::<Vec<_>>().join(", ");
    let Wanted { what, option, .. } = wanted;
    if let Some(named) = named {
        let column = header.iter().position(|name| name.trim() == named);
        let what = format!("there is no column `{named}`; there are: {}", all());
        return column
            .ok_or(DataProblem::Ambiguous { what, readings: vec![format!("to name one: {option} NAME")] });
    }
    match usual(header, wanted).as_slice() {
        [column] => Ok(*column),
        [] => {
            let what = format!("no column {what}; there are: {}", all());
            let usual = wanted.usual.iter().take(4).copied().collect::<Vec<_>>().join(", ");
            let readings = vec![
                format!("one of them is meant: {option} NAME"),
                format!("the first line is missing: name the columns in it ({usual}, …)"),
            ];
            Err(DataProblem::Ambiguous { what, readings })
        }
        several => {
            let names: Vec<&str> = several.iter().map(|&column| header[column].trim()).collect();
            let could = what.replacen("names", "name", 1).replacen("holds", "hold", 1);
            let what = format!("{} could each {could}", names.join(", "));
            let readings = names.iter().map(|name| format!("to take this one: {option} {name}")).collect();
            Err(DataProblem::Ambiguous { what, readings })
        }
    }
}
