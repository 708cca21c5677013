//! Where the dataset is: when a run begins, and after it has moved.

use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use calmix::train::recipe::Recipe;
use calmix::train::trainer::TrainError;
use clap::Args;

use crate::failure::Mistake;
use crate::number::typed;

/// Where the dataset is.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The folder of the dataset
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// What `calmix prepare` wrote about it; a run without prepares the dataset itself
    #[arg(long, value_name = "FOLDER")]
    prepared: Option<PathBuf>,
}

impl Place {
    /// The folder of the dataset, if it was named and is there.
    pub(crate) fn data(&self) -> Result<Option<&Path>> {
        self.data.as_deref().map(is_folder).transpose()
    }

    /// Whether nothing was named.
    pub(crate) fn is_none(&self) -> bool {
        self.data.is_none() && self.prepared.is_none()
    }

    /// As settings of a recipe.
    pub(crate) fn settings(&self) -> Result<Vec<String>> {
        let folders = [("dataset.path", &self.data), ("dataset.prepared", &self.prepared)];
        let mut settings = Vec::new();
        for (key, folder) in folders {
            if let Some(folder) = folder {
                settings.push(format!("{key}={}", whole(is_folder(folder)?)?));
            }
        }
        Ok(settings)
    }
}

/// What to say of an error: if the dataset is not where the recipe says, that, and how to name its new place in this
/// command.
pub(crate) fn or_moved(error: TrainError, recipe: &Recipe, command: &str) -> Error {
    let data = &recipe.dataset;
    let folders = [("the dataset", &data.path, "--data"), ("the table", &data.prepared, "--prepared")];
    let gone = folders.iter().find(|(_, folder, _)| !folder.is_empty() && !Path::new(folder).is_dir());
    match (gone, &error) {
        (Some((what, folder, option)), TrainError::File(_)) => {
            let what = format!("{folder}: {what} of this run is not here any more");
            Mistake::new(what).or_try(format!("{command} {option} FOLDER, with its new place")).into()
        }
        _ => error.into(),
    }
}

/// Makes sure that there is a folder.
pub(crate) fn is_folder(path: &Path) -> Result<&Path> {
    if path.is_dir() {
        return Ok(path);
    }
    let what = if path.exists() { "is not a folder" } else { "does not exist" };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Err(Mistake::new(format!("{}: {what}", path.display())).or_try(format!("`ls {}`", typed(parent))).into())
}

/// A path from the root on, so that a run can be resumed from another folder.
fn whole(path: &Path) -> Result<String> {
    let whole = std::path::absolute(path)?;
    let text = whole.to_str().ok_or_else(|| {
        Mistake::new(format!("{}: not UTF-8, which a recipe has to be; rename it", whole.display()))
    })?;
    Ok(text.to_owned())
}
