//! The arguments of `calmix recipes`.

use clap::Args;

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
    pub(crate) json: bool,
    /// Print the JSON Schema of a recipe, for editors that complete and check TOML
    #[arg(long, conflicts_with = "json")]
    pub(crate) schema: bool,
}

const FIELDS: &str = "\
Fields of --json:
  recipes  list of name and description";
