//! `calmix recipes`: what there is to train with.

use anyhow::Result;
use calmix::train::recipe::{Layers, builtin};
use clap::Args;

use crate::exit::Exit;
use crate::terminal::say;

/// List the recipes that come with calmix, a line each
///
/// A recipe is everything that decides what a run learns: dataset, labels, network, method, steps. `calmix inspect
/// RECIPE` prints one with every key; `--set KEY=VALUE` and `--file FILE` change it; a file that begins with `extends =
/// "RECIPE"` is a recipe of your own.
#[derive(Debug, Args)]
pub(crate) struct Recipes {}

impl Recipes {
    // It has no options yet; every command is run the same way.
    #[allow(clippy::unused_self)]
    pub(crate) fn run(self) -> Result<Exit> {
        let longest = builtin().iter().map(|recipe| recipe.name.len()).max().unwrap_or(0);
        let mut lines = Vec::new();
        for recipe in builtin() {
            let about = Layers::new().recipe(recipe.name).resolve()?.recipe.description;
            lines.push(format!("{:<longest$}  {about}\n", recipe.name));
        }
        say(&format!(
            "{}\nnext: calmix inspect RECIPE, or calmix train RECIPE --data FOLDER",
            lines.concat()
        ))?;
        Ok(Exit::Done)
    }
}
