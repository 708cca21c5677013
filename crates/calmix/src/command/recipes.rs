//! `calmix recipes`: the built-in recipes.

use anyhow::Result;
use calmix_io::wrapped::wrapped;
use calmix_recipe::{Layers, builtin, schema};
use clap::Args;
use serde_json::json;

use crate::exit::Exit;
use crate::terminal::{print, print_json};

/// List the built-in recipes
///
/// A recipe holds every setting that affects what a run learns: dataset, labels, network, method, steps. `calmix inspect
/// RECIPE` prints every key. `calmix train` overrides keys with `--set KEY=VALUE` or `--file FILE`. To write your own
/// recipe, start a file with `extends = "RECIPE"`.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct RecipesArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Print the JSON Schema of a recipe, for editors that complete and check TOML
    #[arg(long, conflicts_with = "json")]
    schema: bool,
}

const FIELDS: &str = "\
Fields of --json:
  recipes  list of name and description";

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
