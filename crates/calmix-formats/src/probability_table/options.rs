//! Which columns hold ids and the probabilities of classes.

use crate::error::FormatProblem;
use crate::labels::columns::LabelColumns;

/// What the user says about the columns.
#[derive(Debug, Clone, Default)]
pub struct ProbabilityOptions {
    /// The classes, in the order of a list column, or the names of their columns; empty if the file says it.
    pub classes: Vec<String>,
    /// The column of ids; by default one with a usual name.
    pub id_column: Option<String>,
}

impl ProbabilityOptions {
    pub(super) fn label_columns(&self) -> LabelColumns {
        LabelColumns { path: self.id_column.clone(), label: None }
    }
}

/// Returns the columns of classes among those that can hold probabilities, with their classes: those that the user names, those called
/// `p(CLASS)`, or else all.
pub(super) fn class_columns(
    names: &[&str],
    wanted: &[String],
) -> Result<Vec<(usize, String)>, FormatProblem> {
    let of_predict = |name: &str| name.strip_prefix("p(")?.strip_suffix(')').map(str::to_owned);
    if !wanted.is_empty() {
        let place = |class: &String| {
            let is_it = |name: &&str| *name == class || of_predict(name).as_ref() == Some(class);
            let found = names.iter().position(is_it).map(|column| (column, class.clone()));
            let missing = || format!("no column `{class}` or `p({class})`; there are: {}", names.join(", "));
            found.ok_or_else(|| FormatProblem::Content(missing()))
        };
        return wanted.iter().map(place).collect();
    }
    let marked = names.iter().enumerate().filter_map(|(column, name)| Some((column, of_predict(name)?)));
    let marked: Vec<(usize, String)> = marked.collect();
    if !marked.is_empty() {
        return Ok(marked);
    }
    Ok(names.iter().enumerate().map(|(column, name)| (column, (*name).to_owned())).collect())
}
