//! A recipe: every key, its value, and where that came from.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use calmix::train::recipe::{Layers, RecipeError, Resolved};
use serde_json::json;

use super::Shown;
use crate::number::typed;

/// A recipe that comes with calmix.
pub(super) fn named(name: &str) -> Result<Shown, RecipeError> {
    let resolved = Layers::new().recipe(name).resolve()?;
    let next = format!("calmix train {name} --data FOLDER");
    Ok(shown(&format!("recipe {name}"), ("name", name), &resolved, &next))
}

/// A recipe in a file.
pub(super) fn file(path: &Path) -> Result<Shown> {
    let resolved = Layers::new().file(path).resolve()?;
    let next = format!("calmix train --file {}", typed(path));
    let file = path.display().to_string();
    Ok(shown(&format!("recipe in {file}"), ("file", &file), &resolved, &next))
}

/// As TOML, whose comments the rest is: the whole can be kept as a file.
fn shown(title: &str, (key, named): (&str, &str), resolved: &Resolved, next: &str) -> Shown {
    let warnings: Vec<String> = resolved.warnings.iter().map(ToString::to_string).collect();
    let odd = warnings.iter().map(|odd| format!("# warning: {odd}\n")).collect::<Vec<_>>().concat();
    let hash = resolved.hash();
    let short: String = hash.chars().take(12).collect();
    let keys = resolved.to_toml_with_origins();
    let text =
        format!("# {title} ({short}): each value, and where it came from\n{odd}\n{keys}\n# next: {next}\n");
    let origins = resolved.origins().into_iter().map(|(path, origin)| (path, origin.to_string()));
    let json = json!({
        "kind": "recipe",
        key: named,
        "hash": hash,
        "recipe": resolved.recipe,
        "origins": origins.collect::<BTreeMap<_, _>>(),
        "warnings": warnings,
    });
    Shown { text, json }
}
