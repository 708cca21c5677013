//! The paths of the files in a run folder.

use std::path::{Path, PathBuf};

use calmix_io::confined_path::ConfinedPath;

use calmix_io::error::{FileError, FileProblem};

/// A file of a run that is written atomically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunFile<'a> {
    /// The recipe with every default written out.
    Recipe,
    /// The environment: versions, device and data.
    Environment,
    /// The summary of the run.
    Summary,
    /// The split: which samples keep their labels.
    Split,
    /// The weights of the resulting model.
    Model,
    /// The description of the weights: hash, network, classes, image format.
    ModelInfo,
    /// The version of [`ModelInfo`](Self::ModelInfo) before its calibration was last refitted.
    PreviousModelInfo,
    /// The result: the selected model, its temperature and its metrics.
    Result,
    /// The frozen backbone under the head, if the model is a head.
    Backbone,
    /// The frozen backbone, if it is an ONNX encoder.
    Encoder,
    /// The projection between the backbone and the head, if any.
    Projection,
    /// What new samples are compared with: features of unlabelled samples, and logits of held-out labels.
    Reference,
    /// The head with its projection and temperature as one linear layer, for other programs.
    FoldedHead,
    /// The sample margins at the end.
    Margins,
    /// Thumbnails of the example predictions.
    Thumbnails,
    /// The predictions of an evaluation, named with lower-case letters, digits, `.`, `-` and `_`.
    Predictions(&'a str),
}

impl RunFile<'_> {
    /// Every file at the top level of the folder.
    pub const ALL: [Self; 15] = [
        Self::Recipe,
        Self::Environment,
        Self::Summary,
        Self::Split,
        Self::Model,
        Self::ModelInfo,
        Self::PreviousModelInfo,
        Self::Result,
        Self::Backbone,
        Self::Encoder,
        Self::Projection,
        Self::Reference,
        Self::FoldedHead,
        Self::Margins,
        Self::Thumbnails,
    ];

    /// Returns its file name.
    fn name(&self) -> &str {
        match self {
            Self::Recipe => "recipe.toml",
            Self::Environment => "environment.json",
            Self::Summary => "summary.json",
            Self::Split => "split.json",
            Self::Model => "model.safetensors",
            Self::ModelInfo => "model.json",
            Self::PreviousModelInfo => "model.previous.json",
            Self::Result => "result.json",
            Self::Backbone => "backbone.safetensors",
            Self::Encoder => "backbone.onnx",
            Self::Projection => "projection.safetensors",
            Self::Reference => "reference.safetensors",
            Self::FoldedHead => "head.safetensors",
            Self::Margins => "margins.json",
            Self::Thumbnails => "thumbnails.safetensors",
            Self::Predictions(name) => name,
        }
    }
}

/// The paths of a run's files. Reading needs no lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    folder: PathBuf,
}

impl Paths {
    pub(super) const LOCK: &str = "calmix.lock";
    pub(super) const CHECKPOINTS: &str = "checkpoints";
    pub(super) const PREDICTIONS: &str = "predictions";
    const MARKER: &str = "run.json";
    const EVENTS: &str = "events.jsonl";
    const TIMING: &str = "timing.jsonl";
    const TENSORBOARD: &str = "tensorboard";
    const FEATURES: &str = "features";
    const PREPARED: &str = "prepared";

    /// Returns the paths of the run in `folder`, which need not exist.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Returns the run's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the run's folder as the root of confined paths.
    pub fn root(&self) -> ConfinedPath {
        ConfinedPath::root(&self.folder)
    }

    /// Returns the path of a file; an error if the name of predictions is not a plain one.
    pub fn file(&self, file: RunFile<'_>) -> Result<ConfinedPath, FileError> {
        match file {
            RunFile::Predictions(name) if !is_plain(name) => {
                let problem = format!("{name:?} is not a valid name for predictions");
                let hint = "use lower-case letters, digits, '.', '-' and '_'";
                Err(FileError::new(self.predictions(), FileProblem::Content(problem)).hint(hint))
            }
            RunFile::Predictions(name) => Ok(self.predictions().join(name)),
            other => Ok(self.root().join(other.name())),
        }
    }

    /// Returns the path of the file of events.
    pub fn events(&self) -> ConfinedPath {
        self.root().join(Self::EVENTS)
    }

    /// Returns the path of the file of the pace, which depends on the clock.
    pub fn timing(&self) -> ConfinedPath {
        self.root().join(Self::TIMING)
    }

    /// Returns the folder of TensorBoard files.
    pub fn tensorboard(&self) -> ConfinedPath {
        self.root().join(Self::TENSORBOARD)
    }

    /// Returns the folder of the prepared dataset, if the run prepared it itself.
    pub fn prepared(&self) -> ConfinedPath {
        self.root().join(Self::PREPARED)
    }

    /// Returns the folder of cached features, if the run has its own cache.
    pub fn features(&self) -> ConfinedPath {
        self.root().join(Self::FEATURES)
    }

    /// Returns the folder of predictions.
    pub fn predictions(&self) -> ConfinedPath {
        self.root().join(Self::PREDICTIONS)
    }

    /// Returns the folder of checkpoints.
    pub fn checkpoints(&self) -> ConfinedPath {
        self.root().join(Self::CHECKPOINTS)
    }

    pub(crate) fn lock(&self) -> ConfinedPath {
        self.root().join(Self::LOCK)
    }

    pub(crate) fn marker(&self) -> ConfinedPath {
        self.root().join(Self::MARKER)
    }

    /// Returns whether a file with this name is written atomically at the top level of the folder.
    pub(super) fn is_run_file(name: &str) -> bool {
        name == Self::MARKER || RunFile::ALL.iter().any(|file| file.name() == name)
    }
}

/// Returns whether `name` is a plain file name, valid on every system: at most 64 lower-case letters, digits, `.`, `-` and
/// `_`, without a leading dot, which scratch names have.
pub(crate) fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    let plain = name.bytes().all(plain) && !name.starts_with('.');
    plain && (1..=64).contains(&name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_folder() {
        for fine in ["step-000000010.bin", "test.safetensors", "a", "a..b"] {
            assert!(is_plain(fine), "{fine}");
        }
        let long = "a".repeat(65);
        let bad = ["", ".", "..", ".a", "a/b", "../a", "/a", "a\\b", "C:a", "A", "a\0", "ä", "a b"];
        for bad in bad.into_iter().chain([".a.tmp-1-2", &long]) {
            assert!(!is_plain(bad), "{bad}");
            assert!(Paths::new("run").file(RunFile::Predictions(bad)).is_err(), "{bad}");
        }
    }
}
