//! Which commands `calmix` runs itself, and which it leaves to `calmix-torch`.

use std::path::Path;

use calmix_data::vectors::VectorSource;
use calmix_recipe::VECTORS_RECIPE;
use calmix_run::inspect;
use calmix_run::read;

use crate::command::Command;
use crate::model_folder::{has_model, has_vector_head};
use crate::sweep::plan::is_of_vectors;

/// Whether a command needs no libtorch. The arguments decide it, for a sweep its file, and for a run that exists its recipe or its
/// model; never the data.
pub fn runs_here(command: &Command) -> bool {
    match command {
        Command::Train(args) => {
            let is_vectors = |recipe: &str| recipe == VECTORS_RECIPE || is_vector_file(Path::new(recipe));
            // Whoever names vectors as --data is told how to train on them, which takes no libtorch.
            let has_vectors = args.overrides.named_data().is_some_and(is_vector_file);
            args.features.is_some() || has_vectors || args.recipe.as_deref().is_some_and(is_vectors)
        }
        Command::Resume(args) => inspect::recipe(&args.run).is_ok_and(|run| run.recipe.has_vectors()),
        Command::Evaluate(args) => match &args.on.on {
            Some(_) => predicts_here(&args.run),
            // A run that is not finished may have a checkpoint to evaluate.
            None => inspect::recipe(&args.run).is_ok_and(|run| run.recipe.has_vectors()),
        },
        Command::Sweep(args) => is_of_vectors(args),
        Command::Doctor(_) => false,
        Command::Calibrate(args) => predicts_here(&args.run),
        Command::Predict(args) => predicts_here(&args.run),
        Command::Export(args) => predicts_here(&args.run),
        Command::Prepare(_)
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

/// Whether the model of a run reads vectors, or there is no model, which either program reports.
fn predicts_here(run: &Path) -> bool {
    match read::model_info(run) {
        Ok(info) => info.reads_vectors(),
        // A damaged model.json does not say what the model reads; its other files do.
        Err(_) => !has_model(run) || has_vector_head(run),
    }
}

/// Whether a path names a file that exists and is called like one of vectors.
pub(crate) fn is_vector_file(path: &Path) -> bool {
    VectorSource::is_named(path) && path.is_file()
}
