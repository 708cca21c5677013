//! The arguments of `calmix inspect`.

use std::path::PathBuf;

use clap::Args;

/// Show a run, a folder of runs, a sweep, a checkpoint, a recipe or a dataset
///
/// For a run: its method, the keys that differ from its recipe, seeds, labels, progress and result. For a folder of runs
/// or a sweep: a table of its runs. For a checkpoint: its files, after their checksums are verified. For a recipe, by name
/// or as a file: every key with its value, the origin of the value and its comment. For a dataset, prepared or not:
/// counts, classes and likely problems. For a file in a run's folder `predictions`: every sample by name, with its label
/// and its prediction. Changes no files.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct InspectArgs {
    /// Folder, file, or name of a recipe
    pub(crate) what: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

const FIELDS: &str = "\
Fields of --json, by kind:
  run         folder, finished, step (of the newest checkpoint, or null), steps (total), summary
              (as in summary.json), changed (keys: key, recipe, run; null if the recipe is
              unknown), recipe, recipe_hash, environment, evaluations (the latest, as in
              events.jsonl), result (as in result.json; null before the end), damaged
              (checkpoints: step and reason)
  runs        folder, runs: folder, state, problem, step, summary, metrics (split, samples,
              error, ece_15)
  checkpoint  folder, hash, manifest (as in its MANIFEST)
  recipe      name or file, hash, recipe (every key), origins (of each value), comments, warnings
  dataset     folder, source (null if prepared), fingerprint, subsets (name, labelled, unlabelled),
              classes (name, labelled, subsets), left_out and unreadable (null if prepared),
              warnings
  predictions file, step, split, model, predictions (sample, label, predicted, confidence)";
