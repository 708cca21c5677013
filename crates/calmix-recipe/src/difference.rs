//! The differences between two recipes.

use toml::Value;

use crate::Recipe;
use crate::field::{Resume, leaves};
use crate::layers::Resolved;

/// A key whose value a resumed run would change.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The key.
    pub path: String,
    /// The value that the run was started with.
    pub old: Value,
    /// The value that it would be resumed with.
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

/// Returns every key that differs between the recipe a run was started with and the one it would be resumed with, in the
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
