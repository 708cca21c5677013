//! A dataset that is not where the recipe of its run says.

use std::path::Path;

use anyhow::Error;
use calmix::cloud::CloudUrl;
use calmix::data::error::DataError;
use calmix::error::CliError;
use calmix::io::shown::shown;
use calmix::recipe::Recipe;
use calmix_train::trainer::TrainError;

/// Replaces an error by a clearer one if the dataset is not where the recipe says.
pub(crate) fn explain_moved(error: TrainError, recipe: &Recipe, command: &str) -> Error {
    let data = &recipe.dataset;
    let folders = [("dataset", &data.path, "--data"), ("prepared table", &data.prepared, "--prepared")];
    let is_missing = |folder: &str| {
        let path = Path::new(folder);
        // What is wrong with a URL, its own error says.
        !folder.is_empty() && !CloudUrl::is_in(path) && !path.is_dir()
    };
    let missing = folders.iter().find(|(_, folder, _)| is_missing(folder));
    match (missing, &error) {
        (Some((what, folder, option)), TrainError::Data(DataError::File { .. })) => {
            let message = format!("{}: the {what} of this run has moved or was deleted", shown(folder));
            CliError::invalid(message).hint(format!("{command} {option} NEW_FOLDER")).into()
        }
        _ => error.into(),
    }
}
