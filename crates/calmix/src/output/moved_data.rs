//! A dataset that is not where the recipe of its run says.

use std::path::Path;

use anyhow::Error;
use calmix_data::cloud::CloudUrl;
use calmix_data::error::DataError;
use calmix_io::shown::shown;
use calmix_recipe::Recipe;

use crate::error::CliError;

/// Replaces an error of a run by a clearer one if its dataset is not where the recipe says. `command` is the one that failed, for
/// the hint.
pub(crate) fn explain_moved(error: Error, recipe: &Recipe, command: &str) -> Error {
    let moved = error.downcast_ref::<DataError>().and_then(|problem| moved(problem, recipe, command));
    moved.map_or(error, Error::from)
}

/// The clearer error about data that cannot be read, if the dataset is not where the recipe says.
pub fn moved(problem: &DataError, recipe: &Recipe, command: &str) -> Option<CliError> {
    let data = &recipe.dataset;
    if recipe.has_vectors() {
        let is_missing = !data.path.is_empty() && !Path::new(&data.path).exists();
        let message = format!("{}: the vectors of this run have moved or were deleted", shown(&data.path));
        return is_missing.then(|| CliError::invalid(message).hint(format!("{command} --data NEW_PLACE")));
    }
    let DataError::File(_) = problem else { return None };
    let folders = [("dataset", &data.path, "--data"), ("prepared table", &data.prepared, "--prepared")];
    let is_missing = |folder: &str| {
        let path = Path::new(folder);
        // What is wrong with a URL, its own error says.
        !folder.is_empty() && !CloudUrl::is_in(path) && !path.is_dir()
    };
    let (what, folder, option) = folders.into_iter().find(|(_, folder, _)| is_missing(folder))?;
    let message = format!("{}: the {what} of this run has moved or was deleted", shown(folder));
    Some(CliError::invalid(message).hint(format!("{command} {option} NEW_FOLDER")))
}
