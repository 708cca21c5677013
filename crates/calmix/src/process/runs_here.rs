//! Which commands `calmix` runs itself, and which it leaves to `calmix-torch`: whatever trains a whole network, or evaluates a
//! checkpoint of one.

use std::path::Path;

use calmix_lifecycle::start::trains_head;
use calmix_recipe::VECTORS_RECIPE;
use calmix_run::read::inspect;

use crate::args::Command;
use crate::args::options::data::is_vector_file;
use crate::args::train::TrainArgs;
use crate::sweep::sweep_file::has_only_heads;
use crate::trainer::FastestDevice;

/// Whether a command trains no network. The arguments decide it, for a sweep its file, and for a run that exists its recipe;
/// never the data.
pub fn runs_here(command: &Command, fastest: FastestDevice) -> bool {
    match command {
        Command::Train(args) => args.features_only || names_vectors(args) || trains_head_here(args, fastest),
        Command::Resume(args) => has_head(&args.run),
        // A run of a network that is not finished may have a checkpoint to evaluate.
        Command::Evaluate(args) => args.on.on.is_some() || has_head(&args.run),
        Command::Sweep(args) => has_only_heads(args),
        Command::Doctor(_) => false,
        Command::Calibrate(_)
        | Command::Predict(_)
        | Command::Export(_)
        | Command::Prepare(_)
        | Command::Inspect(_)
        | Command::Compare(_)
        | Command::Push(_)
        | Command::Report(_)
        | Command::Recipes(_)
        | Command::Weights(_)
        | Command::Completions(_) => true,
        #[cfg(feature = "man")]
        Command::Man(_) => true,
    }
}

/// Whether a command trains on vectors, or names them where they do not belong, which takes no libtorch to say.
pub(crate) fn names_vectors(args: &TrainArgs) -> bool {
    let is_vectors = |recipe: &str| recipe == VECTORS_RECIPE || is_vector_file(Path::new(recipe));
    let has_vectors = args.overrides.named_data().is_some_and(is_vector_file);
    args.features.is_some() || has_vectors || args.recipe.as_deref().is_some_and(is_vectors)
}

/// Whether the recipe trains a head. What is wrong with the arguments is said here as well as there.
fn trains_head_here(args: &TrainArgs, fastest: FastestDevice) -> bool {
    if args.refuse_path_as_recipe().is_err() {
        return true;
    }
    args.layers().map_or(true, |layers| trains_head(&layers, fastest).unwrap_or(true))
}

/// Whether a run trains a head.
fn has_head(run: &Path) -> bool {
    inspect::recipe(run).is_ok_and(|run| run.recipe.has_head())
}
