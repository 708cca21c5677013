//! The files in a run's folder, and the command to run next.

use std::path::Path;

use calmix_io::safe_open;
use calmix_recipe::Recipe;
use calmix_run::read;

use crate::output::format::shell_quoted;

/// The files in a run's folder with a description, the most useful first.
const FILES: &[(&str, &str)] = &[
    ("model.safetensors", "model weights"),
    ("model.json", "hash, network, classes, image format and calibration of the weights"),
    ("backbone.safetensors", "frozen network below the head; the model needs it"),
    ("backbone.onnx", "frozen encoder below the head; the model needs it"),
    ("projection.safetensors", "projects features to the inputs of the head; the model needs it"),
    ("reference.safetensors", "samples and labels to compare new samples with"),
    ("head.safetensors", "head, projection and temperature as one linear layer, for other programs"),
    ("model.previous.json", "model.json before `calmix calibrate`"),
    ("result.json", "classes, temperature and metrics"),
    ("margins.json", "margins of the training samples: how easy they were"),
    ("thumbnails.safetensors", "images that the model gets wrong, for the report"),
    ("recipe.toml", "all settings; enough to repeat the run"),
    ("split.json", "which samples keep their labels"),
    ("summary.json", "dataset, method, network and seeds, for scripts"),
    ("environment.json", "versions, device, dataset"),
    ("events.jsonl", "losses and metrics, one event per line"),
    ("timing.jsonl", "throughput"),
    ("predictions/", "model outputs of each evaluation"),
    ("checkpoints/", "states to resume from"),
    ("tensorboard/", "TensorBoard event files"),
    ("prepared/", "table of the dataset's samples"),
];

/// Lists the files of a run that exist.
pub fn list(run: &Path) -> String {
    let existing = FILES.iter().filter(|(name, _)| safe_open::exists(&run.join(name.trim_end_matches('/'))));
    existing.map(|(name, what)| format!("  {name:<22} {what}\n")).collect::<Vec<_>>().concat()
}

/// Returns the option that names a recipe's feature cache, after a space; empty if it names none.
pub fn cache_option(recipe: &Recipe) -> String {
    match recipe.network.cache.as_str() {
        "" => String::new(),
        cache => format!(" --set {}", shell_quoted(Path::new(&format!("network.cache={cache}")))),
    }
}

/// Formats the next command, with a path as its argument.
pub fn next(command: &str, path: &Path) -> String {
    format!("next: calmix {command} {}\n", shell_quoted(path))
}

/// Returns the next commands for a model: open its report, then predict with it.
pub fn next_with_model(run: &Path) -> String {
    let reads_vectors = read::model_info(run).is_ok_and(|info| info.reads_vectors());
    let inputs = if reads_vectors { "VECTORS, a file" } else { "IMAGES, a folder or files" };
    let run = shell_quoted(run);
    format!("next: calmix report {run}\nthen: calmix predict {run} {inputs} of your own\n")
}

/// Lists the files to copy with a model.
pub fn model_files(run: &Path) -> String {
    let files = [
        "model.safetensors",
        "model.json",
        "backbone.safetensors",
        "backbone.onnx",
        "projection.safetensors",
        "reference.safetensors",
    ];
    files.into_iter().filter(|name| safe_open::exists(&run.join(name))).collect::<Vec<_>>().join(", ")
}

/// Explains how to find or start a run.
pub fn find_runs() -> &'static str {
    if Path::new("runs").is_dir() {
        "`calmix inspect runs` lists your runs"
    } else {
        "name the folder of a run; `calmix train --data FOLDER` starts one"
    }
}
