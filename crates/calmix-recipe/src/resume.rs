//! The differences between two recipes, and which of them are allowed when a run is resumed.

use toml::Value;

use crate::field::{Resume, leaves};
use crate::layers::Resolved;
use crate::problem::unexpected;
use crate::renamed::{first_key, first_word};
use crate::{Recipe, RecipeError, value};

/// A key whose value a resumed run would change.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub path: String,
    /// The value with which the run was started.
    pub old: Value,
    /// The value with which it would be resumed.
    pub new: Value,
    /// Whether a resumed run may change it.
    pub may_change: bool,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, old, new, may_change } = self;
        let assessment = if *may_change { "" } else { ", which would make it a different run" };
        write!(f, "{path}: {old} → {new}{assessment}")
    }
}

/// Returns every key that differs between the recipe of a run and the one for resuming it, in the order of the recipe.
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

impl Resolved {
    /// Returns the hash that identifies the run: 64 hexadecimal digits, equal for recipes that agree in every key that must
    /// match on resuming. It is the BLAKE3 of one `path = value` per line, sorted by path, with the original names of
    /// renamed keys and words, so that renaming a key does not change the hash.
    ///
    /// A key that a later version adds changes the hash. Recipes stored by an older version are therefore compared by
    /// [`differences`]; the hash identifies a run only within one version.
    pub fn hash(&self) -> String {
        let mut lines: Vec<String> = must_match()
            .into_iter()
            .filter_map(|path| {
                let value = first_word(&path, self.value(&path)?);
                Some(format!("{} = {value}\n", first_key(&path)))
            })
            .collect();
        lines.sort_unstable();
        blake3::hash(lines.concat().as_bytes()).to_hex().to_string()
    }
}

impl Recipe {
    /// Returns every key that must match, with its value, for experiment trackers that compare runs.
    pub fn hyperparameters(&self) -> Result<Vec<(String, Value)>, RecipeError> {
        let mut values = value::of(self).map_err(|error| unexpected(&error))?;
        Ok(must_match().into_iter().filter_map(|path| values.remove_entry(&path)).collect())
    }
}
