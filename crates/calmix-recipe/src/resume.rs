//! Which keys a resumed run may change, and which must match.

use toml::Value;

use crate::field::{Resume, leaves};
use crate::problem::unexpected;
use crate::{Recipe, RecipeError, value};

/// Returns every key that a resumed run may change.
pub fn may_change() -> Vec<String> {
    keys(Resume::MayChange)
}

/// Returns every key that a resumed run may not change, because the result of the training depends on it.
pub fn must_match() -> Vec<String> {
    keys(Resume::MustMatch)
}

fn keys(resume: Resume) -> Vec<String> {
    let wanted = leaves(Recipe::fields()).into_iter().filter(|(_, field)| field.resume == resume);
    wanted.map(|(path, _)| path).collect()
}

impl Recipe {
    /// Returns every key that must match, with its value, for experiment trackers that compare runs.
    ///
    /// # Errors
    /// If the recipe does not pass its own checks.
    pub fn hyperparameters(&self) -> Result<Vec<(String, Value)>, RecipeError> {
        let mut values = value::of(self).map_err(|error| unexpected(&error))?;
        Ok(must_match().into_iter().filter_map(|path| values.remove_entry(&path)).collect())
    }
}
