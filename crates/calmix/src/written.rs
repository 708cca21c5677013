//! How a command ends on the screen: the files it wrote and the next command.

use std::path::Path;

use crate::number::typed;

/// What is in a run's folder, in the order in which people want it.
const FILES: &[(&str, &str)] = &[
    ("model.safetensors", "the weights"),
    ("result.json", "classes, temperature and figures that go with them"),
    ("recipe.toml", "everything that decides what the run learns, enough to repeat it"),
    ("split.json", "which labels were kept"),
    ("environment.json", "versions, device, dataset"),
    ("events.jsonl", "losses and figures, a line each"),
    ("timing.jsonl", "how fast it was"),
    ("predictions/", "what the network said at each evaluation"),
    ("checkpoints/", "where it can go on from"),
    ("tensorboard/", "for TensorBoard"),
    ("prepared/", "the table of the dataset"),
];

/// The files of a run that are there.
pub(crate) fn run(folder: &Path) -> String {
    let there = FILES.iter().filter(|(name, _)| folder.join(name).exists());
    let lines = there.map(|(name, what)| format!("  {name:<18} {what}\n")).collect::<Vec<_>>().concat();
    format!("written to {}:\n{lines}", folder.display())
}

/// The next command, about a path.
pub(crate) fn next(command: &str, path: &Path) -> String {
    format!("next: calmix {command} {}\n", typed(path))
}
