//! The errors of this crate.

use std::path::{Path, PathBuf};

use calmix_core::error::CoreError;
use calmix_data::error::DataError;
use calmix_io::error::{ErrorKind, FileError};
use calmix_io::shown::shell_quoted;
use calmix_io::shown::shown;
use calmix_metrics::error::MetricsError;
use calmix_recipe::{Difference, RecipeError, SourceName, is_own_format};
use calmix_run::error::RunError;

/// The reason why a run stopped, or did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LifecycleError {
    /// The run folder cannot be used, or a sink cannot write.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file of the dataset cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A file of the run cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Predictions have the wrong shape.
    #[error(transparent)]
    Method(#[from] CoreError),
    #[error(transparent)]
    Calibration(#[from] MetricsError),
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The requested run cannot be prepared.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A file of pretrained weights cannot be used.
    #[error(transparent)]
    Pretrained(FileError),
    #[error("interrupted; the partly prepared dataset was deleted")]
    PreparationStopped,
    #[error("the run was stopped; resume it")]
    Stopped,
    /// The run stopped before it wrote its recipe.
    #[error("{}: this run was stopped before its first step; start it again with its recipe", shown(.path.display()))]
    NotBegun { path: PathBuf },
    #[error(
        "{}: a resumed run cannot change these keys: {}; start a new run instead. {}", shown(.path.display()),
         listed(.changes), may_change()
    )]
    Changed {
        path: PathBuf,
        /// Every changed key that must not change.
        changes: Vec<Difference>,
    },
    /// The dataset is not the one that the run started with.
    #[error(
        "{}: the dataset has changed: its fingerprint was {before} when the run started and is {now} now; restore the \
         files that it was prepared from, or start a new run", shown(.path.display())
    )]
    OtherDataset { path: PathBuf, before: String, now: String },
    /// The split is not the one that the run started with.
    #[error(
        "{}: this is not the split that the run started with, so it would train on other samples; restore split.json as \
         the run wrote it, or start a new run", shown(.path.display())
    )]
    OtherSplit { path: PathBuf },
    /// The list of unlabelled samples has changed since the run started.
    #[error(
        "{}: the list names other samples than when the run {} started, so it would train on other samples; restore the \
         list, or start a new run in another folder (--run-dir)", shown(.list.display()), shown(.path.display())
    )]
    OtherList { path: PathBuf, list: PathBuf },
    #[error("{0}")]
    Unsupported(String),
}

impl LifecycleError {
    /// Returns the kind of the error. If it is not a mistake, trying again or resuming the run may help.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Run(error) => error.kind(),
            Self::Data(error) => error.kind(),
            Self::Recipe(error) => error.kind(),
            Self::Pretrained(error) => error.kind(),
            Self::Start(_)
            | Self::NotBegun { .. }
            | Self::Changed { .. }
            | Self::OtherDataset { .. }
            | Self::OtherSplit { .. }
            | Self::OtherList { .. }
            | Self::Unsupported(_)
            | Self::Method(CoreError::Memory { .. }) => ErrorKind::Mistake,
            // The user does not choose the paths within a run, so a wrong one is damage, not a mistake.
            Self::File(error) if error.is_transient() => ErrorKind::Transient,
            _ => ErrorKind::Failure,
        }
    }

    /// Returns the error for a file of pretrained weights. The user chose it, so a problem that is not transient is a mistake.
    pub fn pretrained(error: FileError) -> Self {
        Self::Pretrained(error.unless_transient(ErrorKind::Mistake))
    }
}

fn listed(changes: &[Difference]) -> String {
    changes
        .iter()
        .map(|change| format!("{} was {} and would be {}", change.path, change.old, change.new))
        .collect::<Vec<_>>()
        .join("; ")
}

fn may_change() -> String {
    let free = calmix_recipe::may_change();
    format!("Keys that can change: {}", free.join(", "))
}

/// The reason why a run cannot be prepared. All of these are mistakes of the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Neither a recipe nor a dataset is given.
    #[error("no recipe, recipe file or dataset folder given")]
    Nothing,
    #[error("{}: {problem}", shown(.folder.display()))]
    NoFolder { folder: PathBuf, problem: String },
    /// A published dataset, which has no default recipe: the user has to name one.
    #[error("{}: the files look like {source_name}, which needs a recipe", shown(.folder.display()))]
    NeedsRecipe { folder: PathBuf, source_name: SourceName, recipe: &'static str },
    /// A dataset with a single class, of which every prediction is right.
    #[error("{}: there is only one class, `{}`; a classifier needs at least two", shown(.path.display()), shown(.class))]
    OneClass { path: PathBuf, class: String, source_name: SourceName },
    /// The files do not have the format of the recipe.
    #[error("{problem}{}", looks_like(*.detected))]
    OtherFormat {
        folder: PathBuf,
        /// The error of the reader for the recipe's format.
        problem: Box<DataError>,
        detected: SourceName,
        recipe: &'static str,
    },
    #[error("{}: no vector has a label", shown(.path.display()))]
    NoLabels {
        path: PathBuf,
        /// The columns of the vector file that may hold the labels; empty if the labels are in a file of their own.
        columns: Vec<String>,
        /// Whether the labels are in a file of their own.
        has_list: bool,
    },
    /// The prepared dataset that the user named does not match the files.
    #[error("{}: {problem}", shown(.prepared.display()))]
    StalePrepared {
        prepared: PathBuf,
        folder: PathBuf,
        /// The options that make `calmix prepare` read the dataset as the recipe does, each after a space.
        options: String,
        problem: String,
    },
}

impl StartError {
    /// Returns a hint on what to do next, with a command if there is one.
    pub fn hint(&self) -> String {
        match self {
            Self::Nothing => {
                "`calmix recipes` lists the recipes; `calmix train --data FOLDER` trains on a folder of images".to_owned()
            }
            Self::NoFolder { folder, .. } => {
                let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
                format!("`ls {}`", shell_quoted(parent.unwrap_or(Path::new("."))))
            }
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
            Self::NeedsRecipe { folder, recipe, .. } | Self::OtherFormat { folder, recipe, .. } => {
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
            Self::StalePrepared { folder, options, .. } => format!(
                "calmix prepare {}{options} --to NEW_FOLDER, then `--prepared NEW_FOLDER`; or leave `--prepared` out",
                shell_quoted(folder)
            ),
        }
    }
}

fn looks_like(detected: SourceName) -> String {
    if is_own_format(detected) { String::new() } else { format!("; the files look like {detected}") }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn kinds_say_what_to_do() {
        let path = PathBuf::from("run");
        let file = |kind: io::ErrorKind| FileError::new("run/split.json", io::Error::from(kind));
        let kinds = [
            (LifecycleError::OtherSplit { path: path.clone() }, ErrorKind::Mistake),
            (RunError::NoRun { path }.into(), ErrorKind::Mistake),
            (file(io::ErrorKind::NotFound).into(), ErrorKind::Failure),
            (file(io::ErrorKind::TimedOut).into(), ErrorKind::Transient),
            (StartError::Nothing.into(), ErrorKind::Mistake),
            (LifecycleError::pretrained(file(io::ErrorKind::NotFound)), ErrorKind::Mistake),
            (LifecycleError::pretrained(file(io::ErrorKind::TimedOut)), ErrorKind::Transient),
        ];
        for (error, kind) in kinds {
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
