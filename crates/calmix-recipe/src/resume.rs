//! What a resumed run may change.

use toml::Value;

use crate::field::{Resume, leaves};
use crate::layers::{Resolved, unexpected};
use crate::{Recipe, RecipeError, value};

/// A key whose value a resumed run would change.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The key.
    pub path: String,
    /// The value that the run was started with.
    pub old: Value,
    /// The value that it would be resumed with.
    pub new: Value,
    /// Whether it may be changed.
    pub may_change: bool,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, old, new, may_change } = self;
        let assessment = if *may_change { "" } else { ", which would be another run" };
        write!(f, "{path}: {old} → {new}{assessment}")
    }
}

/// Everything that differs between the recipe a run was started with and the one it would be resumed with, in the
/// order of the recipe.
pub fn differences(old: &Resolved, new: &Resolved) -> Vec<Difference> {
    leaves(Recipe::fields())
        .into_iter()
        .filter_map(|(path, field)| {
            let (old, new) = (old.value(&path)?, new.value(&path)?);
            let may_change = field.resume == Resume::MayChange;
            (old != new).then(|| Difference { old: old.clone(), new: new.clone(), path, may_change })
        })
        .collect()
}

/// Every key that a resumed run may change.
pub fn may_change() -> Vec<String> {
    keys(Resume::MayChange)
}

/// Every key that a resumed run may not change: what decides what it learns.
pub fn must_match() -> Vec<String> {
    keys(Resume::MustMatch)
}

fn keys(resume: Resume) -> Vec<String> {
    let wanted = leaves(Recipe::fields()).into_iter().filter(|(_, field)| field.resume == resume);
    wanted.map(|(path, _)| path).collect()
}

impl Recipe {
    /// Every key that must match, with its value, for trackers that show runs side by side.
    ///
    /// # Errors
    /// If the recipe contradicts its own checks.
    pub fn hyperparameters(&self) -> Result<Vec<(String, Value)>, RecipeError> {
        let mut values = value::of(self).map_err(|error| unexpected(&error))?;
        Ok(must_match().into_iter().filter_map(|path| values.remove_entry(&path)).collect())
    }
}

/// Blake3 of the keys that must match, one `path = value` a line, in the order of their paths.
///
/// A key that a later version adds changes it. What an older version stored is therefore read again and compared by
/// [`differences`]; the hash names a run within one version.
pub(super) fn hash(resolved: &Resolved) -> String {
    let mut lines: Vec<String> = must_match()
        .into_iter()
        .filter_map(|path| resolved.value(&path).map(|value| format!("{path} = {value}\n")))
        .collect();
    lines.sort_unstable();
    blake3::hash(lines.concat().as_bytes()).to_hex().to_string()
}
