//! `--data` and `--prepared`: where the dataset is, also after it has moved.

use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_data::cloud::CloudUrl;
use calmix_io::shown::shown;
use clap::Args;

use crate::error::CliError;
use crate::format::shell_quoted;

/// The location of the dataset.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Dataset folder, or the URL of its shards
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Table written by `calmix prepare` [default: the run prepares the dataset itself]
    #[arg(long, value_name = "FOLDER")]
    prepared: Option<PathBuf>,
}

impl DataArgs {
    /// Returns the dataset folder, if given; it must exist.
    pub fn folder(&self) -> Result<Option<&Path>> {
        self.data.as_deref().map(existing_data).transpose()
    }

    /// Returns the dataset folder as the user named it.
    pub fn named(&self) -> Option<&Path> {
        self.data.as_deref()
    }

    /// Whether neither option is given.
    pub fn is_empty(&self) -> bool {
        self.data.is_none() && self.prepared.is_none()
    }

    /// Returns the options as settings of a recipe.
    pub fn settings(&self) -> Result<Vec<String>> {
        self.folder()?;
        self.vector_settings()
    }

    /// Returns the options as settings of a recipe on vectors: the dataset may also be a file.
    pub fn vector_settings(&self) -> Result<Vec<String>> {
        let mut settings = Vec::new();
        if let Some(data) = &self.data {
            settings.push(format!("dataset.path={}", absolute(existing_dataset(data)?)?));
        }
        if let Some(prepared) = &self.prepared {
            settings.push(format!("dataset.prepared={}", absolute(existing_folder(prepared)?)?));
        }
        Ok(settings)
    }
}

/// The path, if it is an existing folder.
pub fn existing_folder(path: &Path) -> Result<&Path> {
    if path.is_dir() {
        return Ok(path);
    }
    let what = if path.exists() { "is not a folder" } else { "does not exist" };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let message = format!("{}: {what}", shown(path.display()));
    let hint = match similar(path, parent) {
        Some(meant) => format!("did you mean {}?", shell_quoted(&meant)),
        None => format!("`ls {}`", shell_quoted(parent)),
    };
    Err(CliError::invalid(message).hint(hint).into())
}

/// The path, if it is an existing folder, or a URL, which the first request shows to exist.
pub fn existing_data(path: &Path) -> Result<&Path> {
    if CloudUrl::is_in(path) { Ok(path) } else { existing_folder(path) }
}

/// The path, if it is an existing folder, a file of vectors, or a URL.
pub fn existing_dataset(path: &Path) -> Result<&Path> {
    if path.is_file() { Ok(path) } else { existing_data(path) }
}

/// The path, if something exists there.
pub fn existing(path: &Path) -> Result<&Path> {
    if path.exists() { Ok(path) } else { existing_folder(path) }
}

/// Refuses a URL where only a file system will do. `what` is kept there, such as "a run folder".
pub fn on_file_system(path: Option<&Path>, what: &str) -> Result<()> {
    let refused = path.map(|path| CloudUrl::refuse(path, what)).transpose();
    refused.map(drop).map_err(|error| CliError::invalid(error.to_string()).into())
}

/// A folder whose name differs only in case, spaces and punctuation.
fn similar(path: &Path, parent: &Path) -> Option<PathBuf> {
    let letters = |path: &Path| -> Option<String> {
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        Some(name.chars().filter(|c| c.is_alphanumeric()).collect())
    };
    let wanted = letters(path).filter(|letters| !letters.is_empty())?;
    let folders = std::fs::read_dir(parent).ok()?.flatten().filter(|entry| entry.path().is_dir());
    let named = folders.map(|entry| path.with_file_name(entry.file_name()));
    named.into_iter().find(|folder| folder != path && letters(folder).as_ref() == Some(&wanted))
}

/// The absolute path, so that a run can be resumed from another folder; a URL as it is.
pub fn absolute(path: &Path) -> Result<String> {
    let absolute = if CloudUrl::is_in(path) { path.to_owned() } else { std::path::absolute(path)? };
    let text = absolute.to_str().ok_or_else(|| {
        CliError::invalid(format!("{}: the path is not UTF-8; rename the folder", shown(absolute.display())))
    })?;
    Ok(text.to_owned())
}
