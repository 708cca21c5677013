//! A recipe: every key with its value, the origin of the value and its comment.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_recipe::{Layers, RecipeError, Resolved};
use serde_json::json;

use super::inspect_output::InspectOutput;
use crate::output::format::shell_quoted;

/// Inspects a built-in recipe.
pub(super) fn named(name: &str) -> Result<InspectOutput, RecipeError> {
    let resolved = Layers::new().recipe(name).resolve()?;
    let next = format!("calmix train {name} --data FOLDER");
    Ok(inspection(&format!("recipe {name}"), ("name", name), &resolved, &next))
}

/// Inspects a recipe in a file.
pub(super) fn file(path: &Path) -> Result<InspectOutput> {
    let resolved = Layers::new().file(path).resolve()?;
    let next = format!("calmix train --file {}", shell_quoted(path));
    let file = path.display().to_string();
    Ok(inspection(&format!("recipe in {}", shown(&file)), ("file", &file), &resolved, &next))
}

/// Writes TOML with everything else in comments, so that the output is a valid recipe file.
fn inspection(title: &str, (key, named): (&str, &str), resolved: &Resolved, next: &str) -> InspectOutput {
    let warnings: Vec<String> = resolved.warnings.iter().map(ToString::to_string).collect();
    let commented =
        warnings.iter().map(|warning| format!("# warning: {warning}\n")).collect::<Vec<_>>().concat();
    let hash = resolved.hash();
    let short: String = hash.chars().take(12).collect();
    let keys = resolved.to_toml_with_origins();
    let text = format!(
        "# {title} ({short}): every key with its value, its origin and its comment\n{commented}\n{keys}\n# next: {next}\n"
    );
    let origins = resolved.origins().into_iter().map(|(path, origin)| (path, origin.to_string()));
    let json = json!({
        "kind": "recipe",
        key: named,
        "hash": hash,
        "recipe": resolved.to_json(),
        "origins": origins.collect::<BTreeMap<_, _>>(),
        "comments": resolved.comments(),
        "warnings": warnings,
    });
    InspectOutput { text, json }
}
