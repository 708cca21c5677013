//! The recipe, from the outside.
#![allow(clippy::unwrap_used, clippy::panic)] // in the functions that the tests share

#[path = "recipe/builtin.rs"]
mod builtin;
#[path = "recipe/layers.rs"]
mod layers;
#[path = "recipe/meaning.rs"]
mod meaning;
#[path = "recipe/messages.rs"]
mod messages;
#[path = "recipe/resume.rs"]
mod resume;
#[path = "recipe/schema.rs"]
mod schema;
#[path = "recipe/values.rs"]
mod values;

use std::path::Path;

use calmix_recipe::{Layers, RecipeError, Resolved};

/// The recipe with these settings over the defaults.
fn set(settings: &[&str]) -> Result<Resolved, RecipeError> {
    settings.iter().fold(Layers::new(), |layers, setting| layers.set(setting)).resolve()
}

/// The recipe of a file called `mine.toml`.
fn file(text: &str) -> Result<Resolved, RecipeError> {
    Layers::new().text(Path::new("mine.toml"), text).resolve()
}
