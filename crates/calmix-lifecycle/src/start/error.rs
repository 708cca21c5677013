//! Why a run cannot be prepared from the arguments and files that the user gave.

use std::path::{Path, PathBuf};

use calmix_io::shell_quoted::shell_quoted;
use calmix_io::shown::shown;
use calmix_recipe::SourceName;

/// Why a run cannot be prepared. All of these are mistakes of the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Neither a recipe nor a dataset is given.
    #[error("no recipe, recipe file or dataset folder given")]
    Nothing,
    /// The dataset is not an existing folder.
    #[error("{}: {problem}", shown(.folder.display()))]
    NoFolder {
        /// The path that the user gave.
        folder: PathBuf,
        /// Why it cannot be used.
        problem: String,
    },
    /// The format of a published dataset, for which the user has to name a recipe.
    #[error("{}: the files look like {source_name}, which needs a recipe", shown(.folder.display()))]
    NeedsRecipe {
        /// The folder of the dataset.
        folder: PathBuf,
        /// What the files look like.
        source_name: SourceName,
        /// A recipe for it.
        recipe: &'static str,
    },
}

impl StartError {
    pub(super) fn no_folder(folder: &Path, problem: &dyn std::fmt::Display) -> Self {
        Self::NoFolder { folder: folder.to_owned(), problem: problem.to_string() }
    }

    /// Suggests what to try instead, as a command if there is one.
    pub fn hint(&self) -> String {
        match self {
            Self::Nothing => {
                "`calmix recipes` lists the recipes; `calmix train --data FOLDER` trains on a folder of images".to_owned()
            }
            Self::NoFolder { folder, .. } => {
                let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
                format!("`ls {}`", shell_quoted(parent.unwrap_or(Path::new("."))))
            }
            Self::NeedsRecipe { folder, recipe, .. } => {
                format!("calmix train {recipe} --data {}", shell_quoted(folder))
            }
        }
    }
}
