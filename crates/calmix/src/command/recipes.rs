//! `calmix recipes`: the built-in recipes.

use anyhow::Result;
use calmix_io::text::wrapped;
use calmix_recipe::{Layers, builtin, schema};
use serde_json::json;

use crate::args::recipes::RecipesArgs;
use crate::error::exit::Exit;
use crate::terminal::{print, print_json};

impl RecipesArgs {
    pub fn run(self) -> Result<Exit> {
        if self.schema {
            print_json(&schema())?;
            return Ok(Exit::Done);
        }
        let mut recipes = Vec::new();
        for recipe in builtin() {
            let about = Layers::new().recipe(recipe.name).resolve()?.recipe.description;
            recipes.push((recipe.name, about));
        }
        if self.json {
            let recipe = |(name, about): &(_, _)| json!({ "name": name, "description": about });
            print_json(&json!({ "recipes": recipes.iter().map(recipe).collect::<Vec<_>>() }))?;
            return Ok(Exit::Done);
        }
        let longest = recipes.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let indent = longest + 2;
        let line =
            |(name, about): &(_, String)| format!("{name:<indent$}{}\n", wrapped(about, indent, indent));
        print(&format!(
            "{}\nnext: calmix inspect RECIPE, or calmix train RECIPE --data FOLDER",
            recipes.iter().map(line).collect::<Vec<_>>().concat()
        ))?;
        Ok(Exit::Done)
    }
}
