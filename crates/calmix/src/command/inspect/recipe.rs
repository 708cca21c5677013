//! A recipe: every key, its value, and where that came from.

use std::path::Path;

use anyhow::Result;
use calmix::train::recipe::{Layers, RecipeError, Resolved};

use crate::number::typed;

/// A recipe that comes with calmix.
pub(super) fn named(name: &str) -> Result<String, RecipeError> {
    let resolved = Layers::new().recipe(name).resolve()?;
    let next = format!("calmix train {name} --data FOLDER");
    Ok(shown(&format!("recipe {name}"), &resolved, &next))
}

/// A recipe in a file.
pub(super) fn file(path: &Path) -> Result<String> {
    let resolved = Layers::new().file(path).resolve()?;
    let next = format!("calmix train --file {}", typed(path));
    Ok(shown(&format!("recipe in {}", path.display()), &resolved, &next))
}

/// As TOML, whose comments the rest is: the whole can be kept as a file.
fn shown(title: &str, resolved: &Resolved, next: &str) -> String {
    let warnings =
        resolved.warnings.iter().map(|odd| format!("# warning: {odd}\n")).collect::<Vec<_>>().concat();
    let hash: String = resolved.hash().chars().take(12).collect();
    let keys = resolved.to_toml_with_origins();
    format!("# {title} ({hash}): each value, and where it came from\n{warnings}\n{keys}\n# next: {next}\n")
}
