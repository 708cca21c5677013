//! Vectors that are not where the recipe of their run says.

use std::path::Path;

use anyhow::Error;
use calmix_io::shown::shown;
use calmix_recipe::Recipe;
use calmix_vectors::VectorsError;

use crate::error::CliError;

/// Replaces an error by a clearer one if the vectors are not where the recipe says; `hint` names their new place.
pub(crate) fn explain_moved(error: VectorsError, recipe: &Recipe, hint: &str) -> Error {
    let path = &recipe.dataset.path;
    if !matches!(error, VectorsError::Data(_)) || Path::new(path).exists() {
        return error.into();
    }
    let message = format!("{}: the vectors of this run have moved or were deleted", shown(path));
    CliError::invalid(message).hint(hint).into()
}
