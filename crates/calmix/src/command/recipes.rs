//! `calmix recipes`: what there is to train with.

use anyhow::Result;
use calmix::train::recipe::{Layers, builtin};
use clap::Args;
use serde_json::json;

use crate::exit::Exit;
use crate::terminal::{say, say_json};

/// List the recipes that come with calmix, a line each
///
/// A recipe is everything that decides what a run learns: dataset, labels, network, method, steps. `calmix inspect
/// RECIPE` prints one with every key; `--set KEY=VALUE` and `--file FILE` change it; a file that begins with `extends =
/// "RECIPE"` is a recipe of your own.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub(crate) struct Recipes {
    /// Print one JSON document instead, for programs
    #[arg(long)]
    json: bool,
}

const FIELDS: &str = "\
Fields of --json:
  recipes  name and description of each";

impl Recipes {
    pub(crate) fn run(self) -> Result<Exit> {
        let mut recipes = Vec::new();
        for recipe in builtin() {
            let about = Layers::new().recipe(recipe.name).resolve()?.recipe.description;
            recipes.push((recipe.name, about));
        }
        if self.json {
            let recipe = |(name, about): &(_, _)| json!({ "name": name, "description": about });
            say_json(&json!({ "recipes": recipes.iter().map(recipe).collect::<Vec<_>>() }))?;
            return Ok(Exit::Done);
        }
        let longest = recipes.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let line = |(name, about): &(_, _)| format!("{name:<longest$}  {about}\n");
        say(&format!(
            "{}\nnext: calmix inspect RECIPE, or calmix train RECIPE --data FOLDER",
            recipes.iter().map(line).collect::<Vec<_>>().concat()
        ))?;
        Ok(Exit::Done)
    }
}
