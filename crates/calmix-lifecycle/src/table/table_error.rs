//! Why the table of a dataset cannot be used for a run.

use std::path::PathBuf;

use calmix_data::error::DataError;
use calmix_io::shell_quoted::shell_quoted;
use calmix_io::shown::shown;
use calmix_recipe::{SourceName, is_own_format};

/// Why a table cannot be used. All of these are mistakes of the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// With one class, every prediction is right.
    #[error("{}: there is only one class, `{}`; a classifier needs at least two", shown(.path.display()), shown(.class))]
    OneClass {
        /// The folder or file of the dataset.
        path: PathBuf,
        /// The only class.
        class: String,
        /// The format of its files.
        source_name: SourceName,
    },
    /// The files do not have the format of the recipe.
    #[error("{problem}{}", looks_like(*.detected))]
    OtherFormat {
        /// The folder of the dataset.
        folder: PathBuf,
        /// The error of the reader for the recipe's format.
        problem: Box<DataError>,
        /// What the files look like.
        detected: SourceName,
        /// A recipe for it.
        recipe: &'static str,
    },
    /// No vector has a label.
    #[error("{}: no vector has a label", shown(.path.display()))]
    NoLabels {
        /// The folder or file of the vectors.
        path: PathBuf,
        /// The columns of the file that may hold the labels, unless the labels are in a file of their own.
        columns: Vec<String>,
        /// Whether the labels are in a file of their own.
        has_list: bool,
    },
    /// The prepared table that the user named does not match the files.
    #[error("{}: {problem}", shown(.table.display()))]
    StaleTable {
        /// The prepared table.
        table: PathBuf,
        /// The folder of the dataset.
        folder: PathBuf,
        /// The options with which the user names how the dataset is read, each after a space.
        options: String,
        /// Why it does not match.
        problem: String,
    },
}

impl TableError {
    /// Suggests what to try instead, as a command if there is one.
    pub fn hint(&self) -> String {
        match self {
            Self::OneClass { source_name: SourceName::Vectors, .. } => {
                "label vectors of a second class, in the file of the vectors or with `--labels FILE`"
                    .to_owned()
            }
            Self::OneClass { .. } => {
                "put the images of each class into a folder named after the class".to_owned()
            }
            Self::OtherFormat { folder, detected, .. } if is_own_format(*detected) => {
                format!("calmix train --data {}, to train on your own images", shell_quoted(folder))
            }
            Self::OtherFormat { folder, recipe, .. } => {
                format!("calmix train {recipe} --data {}", shell_quoted(folder))
            }
            Self::NoLabels { has_list: true, .. } => {
                "label some vectors of each class in the file of `--labels`".to_owned()
            }
            Self::NoLabels { columns, .. } if columns.is_empty() => {
                "`--labels FILE` names a CSV or an .npy with their labels".to_owned()
            }
            Self::NoLabels { columns, .. } => {
                let columns: Vec<String> = columns.iter().map(shown).collect();
                format!(
                    "`--label-column NAME` names the column of the labels, one of {}; or `--labels FILE`",
                    columns.join(", ")
                )
            }
            Self::StaleTable { folder, options, .. } => format!(
                "calmix prepare {}{options} --to NEW_FOLDER, then `--prepared NEW_FOLDER`; or leave `--prepared` out",
                shell_quoted(folder)
            ),
        }
    }
}

fn looks_like(detected: SourceName) -> String {
    if is_own_format(detected) { String::new() } else { format!("; the files look like {detected}") }
}
