//! `--data` and `--prepared`: the path of the dataset, which may have changed since the run began.

use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use calmix_data::cloud::CloudUrl;
use calmix_formats::vectors::VectorSource;
use calmix_io::shown::shown;
use calmix_io::system::is_pipe;
use calmix_recipe::nearest;
use clap::Args;

use crate::error::CliError;
use crate::output::format::shell_quoted;
use crate::predict::input::InputKind;

/// The location of the dataset.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Dataset folder, or the URL of its shards
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Dataset prepared by `calmix prepare` [default: the run prepares the dataset itself]
    #[arg(long, value_name = "FOLDER")]
    prepared: Option<PathBuf>,
}

impl DataArgs {
    /// Returns the dataset folder, if given; it must exist.
    pub fn folder(&self) -> Result<Option<&Path>> {
        self.data.as_deref().map(existing_data).transpose()
    }

    pub fn named(&self) -> Option<&Path> {
        self.data.as_deref()
    }

    pub fn has_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    /// Returns whether neither option is given.
    pub fn is_empty(&self) -> bool {
        self.data.is_none() && self.prepared.is_none()
    }

    /// Returns the options as settings of a recipe.
    pub fn settings(&self) -> Result<Vec<String>> {
        self.folder()?;
        self.vector_settings()
    }

    /// Returns the options as settings of a recipe on vectors, whose dataset may also be a file.
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

/// Returns the path if it is an existing folder.
pub fn existing_folder(path: &Path) -> Result<&Path> {
    if path.is_dir() { Ok(path) } else { Err(unusable_path(path, Path::is_dir)) }
}

/// Returns the path if it is an existing folder, or a URL without secrets. Whether the URL exists is left to the first request.
pub fn existing_data(path: &Path) -> Result<&Path> {
    if let Some(url) = CloudUrl::parse(path) {
        url.check()?;
        return Ok(path);
    }
    if is_vector_file(path) {
        let message = format!("{}: is a file, and --data takes a folder", shown(path.display()));
        let hint = format!("calmix train --features {}, to train on vectors", shell_quoted(path));
        return Err(CliError::invalid(message).hint(hint).into());
    }
    existing_folder(path)
}

/// Returns the path if it is an existing folder, a file of vectors, or a URL.
pub fn existing_dataset(path: &Path) -> Result<&Path> {
    if let Some(url) = CloudUrl::parse(path) {
        url.check()?;
        return Ok(path);
    }
    if path.is_file() || path.is_dir() {
        return Ok(path);
    }
    Err(unusable_path(path, |entry| entry.is_file() || entry.is_dir()))
}

/// Returns the absolute paths of further sets of features, which must exist.
pub fn existing_features(paths: &[PathBuf]) -> Result<Vec<String>> {
    paths.iter().map(|path| absolute(existing_dataset(path)?)).collect()
}

/// Returns the path of labelled samples if they exist; images must be in a folder.
pub fn existing_labelled(path: &Path, kind: InputKind) -> Result<&Path> {
    match kind {
        InputKind::Image => existing_folder(path),
        InputKind::Vector => existing_dataset(path),
    }
}

/// Returns the path if it exists.
pub fn existing(path: &Path) -> Result<&Path> {
    if path.exists() { Ok(path) } else { Err(unusable_path(path, Path::exists)) }
}

/// Returns the error for a path that cannot be used. It suggests the usable path that the user most likely meant.
fn unusable_path(path: &Path, is_usable: impl Fn(&Path) -> bool) -> Error {
    let what = match path.metadata().map(|metadata| metadata.file_type()) {
        Err(_) => "does not exist",
        Ok(kind) if is_pipe(kind) => {
            let message = format!("{}: a pipe, which cannot be read more than once", shown(path.display()));
            return CliError::invalid(message).hint("write it to a file first, and name the file").into();
        }
        Ok(kind) if kind.is_file() => "is not a folder",
        Ok(_) => "is neither a file nor a folder",
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let message = format!("{}: {what}", shown(path.display()));
    let hint = match similar_entry(path, parent, is_usable) {
        Some(closest) => format!("did you mean {}?", shell_quoted(&closest)),
        None => format!("`ls {}`", shell_quoted(parent)),
    };
    CliError::invalid(message).hint(hint).into()
}

/// Refuses a URL where a path on a file system is needed. `what` is stored there, such as "a run folder".
pub fn on_file_system(path: Option<&Path>, what: &str) -> Result<()> {
    let refused = path.map(|path| CloudUrl::refuse(path, what)).transpose();
    refused.map(drop).map_err(|error| CliError::invalid(error.to_string()).into())
}

/// Returns the usable entry of a folder with a similar name: equal but for case, spaces and punctuation, or else a typo away.
fn similar_entry(path: &Path, parent: &Path, is_usable: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_str()?;
    let entries = std::fs::read_dir(parent).ok()?.flatten().filter(|entry| is_usable(&entry.path()));
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name != wanted);
    // Sort, so that the result does not depend on the order in which the system lists a folder.
    names.sort_unstable();
    let same_letters = |name: &&String| {
        !normalised_name(wanted).is_empty() && normalised_name(name) == normalised_name(wanted)
    };
    let closest = names.iter().find(same_letters).map(String::as_str);
    let closest = closest.or_else(|| nearest(wanted, names.iter().map(String::as_str)))?;
    Some(path.with_file_name(closest))
}

/// Returns a name without case, spaces and punctuation.
fn normalised_name(name: &str) -> String {
    name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Returns the absolute path, so that a run can be resumed from another folder; a URL is not changed.
pub fn absolute(path: &Path) -> Result<String> {
    let absolute = if CloudUrl::is_url(path) { path.to_owned() } else { std::path::absolute(path)? };
    let text = absolute.to_str().ok_or_else(|| {
        CliError::invalid(format!("{}: the path is not UTF-8; rename the folder", shown(absolute.display())))
    })?;
    Ok(text.to_owned())
}

/// Returns whether a path is an existing file with the extension of a vector file.
pub(crate) fn is_vector_file(path: &Path) -> bool {
    VectorSource::is_named(path) && path.is_file()
}
