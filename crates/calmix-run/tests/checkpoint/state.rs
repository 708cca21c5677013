//! A small training state that is a function of its step, so that whatever is loaded can be evaluated.

use std::fs;
use std::path::{Path, PathBuf};

use calmix_run::checkpoint::{
    Checkpoint, CheckpointContents, Checkpoints, Committed, FoundCheckpoint, Identity, newest,
};
use calmix_run::error::RunError;
use calmix_run::run::{Mark, Run};
use calmix_testkit::faulty_disk::FaultyDisk;

/// Two pages of weights, more than 64 KiB of margins, two small files of one length.
#[derive(Debug, PartialEq)]
pub(crate) struct State {
    weights: Vec<u8>,
    margins: Vec<u8>,
    small: [Vec<u8>; 2],
}

impl State {
    pub(crate) fn at(step: u64) -> Self {
        let bytes = |count: u64| (1..=count).flat_map(|i| (i * 1_000 + step).to_le_bytes()).collect();
        Self {
            weights: bytes(550),
            margins: bytes(8_500),
            small: [0, 1].map(|rank| format!(r#"{{"rank":{rank},"step":{step:04}}}"#).into()),
        }
    }

    pub(crate) fn snapshot<T>(
        &self,
        step: u64,
        journal: Mark,
        then: impl FnOnce(CheckpointContents<'_>) -> T,
    ) -> T {
        let parts: Vec<(_, &[u8])> = vec![
            ("margins.safetensors", &self.margins),
            ("model.safetensors", &self.weights),
            ("rank-0.json", &self.small[0]),
            ("rank-1.json", &self.small[1]),
        ];
        then(CheckpointContents { step, identity: identity(), journal, parts })
    }

    fn of(checkpoint: &Checkpoint) -> Self {
        let bytes = |name: &str| checkpoint.bytes(name).unwrap();
        Self {
            weights: bytes("model.safetensors"),
            margins: bytes("margins.safetensors"),
            small: [bytes("rank-0.json"), bytes("rank-1.json")],
        }
    }
}

pub(crate) fn identity() -> Identity {
    let [recipe, dataset, split] = ["c0ffee", "5eed", "5917"].map(str::to_owned);
    Identity { recipe, dataset, split, groups: 1, micro_batches: 4 }
}

pub(crate) fn save(checkpoints: &mut Checkpoints, step: u64) -> Result<Committed, RunError> {
    State::at(step).snapshot(step, Mark::start(), |snapshot| checkpoints.save(&snapshot))
}

/// Checks that what a checkpoint holds is the state of its step, bit for bit.
pub(crate) fn check(checkpoint: &Checkpoint) {
    assert_eq!(State::of(checkpoint), State::at(checkpoint.step()));
    assert_eq!(checkpoint.manifest().identity, identity());
}

/// The newest usable checkpoint of a run, whose content is right.
pub(crate) fn found(run: &Path) -> FoundCheckpoint {
    let found = newest(&run.join("checkpoints")).unwrap().unwrap();
    check(&found.checkpoint);
    found
}

/// A run with checkpoints at these steps, which no process has open.
pub(crate) fn run_with(steps: &[u64]) -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("run");
    let run = Run::create_on(&folder, FaultyDisk::sound()).unwrap();
    let mut checkpoints = run.checkpoints(steps.len());
    for &step in steps {
        save(&mut checkpoints, step).unwrap();
    }
    (temp, folder)
}

/// The folder of the checkpoint of a step.
pub(crate) fn place(run: &Path, step: u64) -> PathBuf {
    run.join(format!("checkpoints/step-{step:09}"))
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Half-written checkpoints in a run.
pub(crate) fn scratches(run: &Path) -> usize {
    names(&run.join("checkpoints")).iter().filter(|name| name.contains(".tmp-")).count()
}

/// Copies a folder to a place where nothing else is kept.
pub(crate) fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for name in names(from) {
        let from = from.join(&name);
        let to = to.join(&name);
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).unwrap();
        }
    }
}
