//! What is changed about a recipe from the command line.

use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix::train::recipe::Layers;
use clap::Args;

use crate::failure::Mistake;
use crate::number::typed;

/// Changes to a recipe, and how much is told.
#[derive(Debug, Args)]
pub(crate) struct Changes {
    /// The folder of the dataset
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// What `calmix prepare` wrote about it; without, the run prepares the dataset itself
    #[arg(long, value_name = "FOLDER")]
    prepared: Option<PathBuf>,
    /// Set a key of the recipe, such as train.steps=2000; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Threads of the arithmetic on a CPU [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Option<u32>,
    /// Write events for TensorBoard as well
    #[arg(long)]
    tensorboard: bool,
    /// Show no progress: only warnings and the result
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Changes {
    /// The folder of the dataset, if it was named and is there.
    pub(crate) fn data(&self) -> Result<Option<&Path>> {
        self.data.as_deref().map(is_folder).transpose()
    }

    /// Whether there is anything to change.
    pub(crate) fn are_none(&self) -> bool {
        self.data.is_none()
            && self.prepared.is_none()
            && self.settings.is_empty()
            && self.threads.is_none()
            && !self.tensorboard
    }

    /// Lays the changes over a recipe. The settings come first, so that their numbers in messages are those on the
    /// command line.
    pub(crate) fn over(&self, layers: Layers) -> Result<Layers> {
        let layers = self.settings.iter().fold(layers, |layers, setting| layers.set(setting));
        let folders = [("dataset.path", &self.data), ("dataset.prepared", &self.prepared)];
        let mut flags = Vec::new();
        for (key, folder) in folders {
            if let Some(folder) = folder {
                flags.push(format!("{key}={}", whole(is_folder(folder)?)?));
            }
        }
        flags.extend(self.threads.map(|threads| format!("train.threads={threads}")));
        flags.extend(self.tensorboard.then(|| "log.tensorboard=true".to_owned()));
        Ok(flags.iter().fold(layers, |layers, flag| layers.set(flag)))
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
