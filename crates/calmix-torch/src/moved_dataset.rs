//! A dataset that is not where the recipe of its run says.

use std::path::Path;

use anyhow::Error;
use calmix::data::error::DataError;
use calmix::error::CliError;
use calmix::io::shown::shown;
use calmix::recipe::Recipe;
use calmix_train::trainer::TrainError;

/// Replaces an error by a clearer one if the dataset is not where the recipe says.
pub(crate) fn explain_moved(error: TrainError, recipe: &Recipe, command: &str) -> Error {
    let data = &recipe.dataset;
    let folders = [("dataset", &data.path, "--data"), ("prepared table", &data.prepared, "--prepared")];
    let missing = folders.iter().find(|(_, folder, _)| !folder.is_empty() && !Path::new(folder).is_dir());
    match (missing, &error) {
        (Some((what, folder, option)), TrainError::Data(DataError::File { .. })) => {
            let message = format!("{}: the {what} of this run has moved or was deleted", shown(folder));
            CliError::invalid(message).hint(format!("{command} {option} NEW_FOLDER")).into()
        }
        _ => error.into(),
    }
}
