//! The paths of the files in a run folder.

use std::path::{Path, PathBuf};

use calmix_io::confined_path::ConfinedPath;

use calmix_io::error::{FileError, FileProblem};

/// A file of a run that is written as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunFile<'a> {
    /// The recipe with every default written out.
    Recipe,
    /// The environment: versions, device, dataset.
    Environment,
    /// The summary of the run.
    Summary,
    /// Which samples kept their labels.
    Split,
    /// The weights of the resulting model.
    Model,
    /// What the weights are: their hash, network, classes, images.
    ModelInfo,
    /// [`ModelInfo`](Self::ModelInfo) as it was before its calibration was last fitted again.
    PreviousModelInfo,
    /// The result: which model, its temperature, its metrics.
    Result,
    /// The frozen backbone under the head that is the model, if any.
    Backbone,
    /// The same if the backbone is an ONNX encoder.
    Encoder,
    /// The projection between the backbone and the head, if any.
    Projection,
    /// The head with its projection and its temperature as one linear layer, for other programs.
    FoldedHead,
    /// The margins of the samples at the end.
    Margins,
    /// Thumbnails of the example predictions.
    Thumbnails,
    /// The predictions of an evaluation, by a name of lower-case letters, digits, `.`, `-` and `_`.
    Predictions(&'a str),
}

/// The paths of the files of a run. Reading needs no lock.
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
    const RECIPE: &str = "recipe.toml";
    const ENVIRONMENT: &str = "environment.json";
    const SUMMARY: &str = "summary.json";
    const SPLIT: &str = "split.json";
    const MODEL: &str = "model.safetensors";
    const MODEL_INFO: &str = "model.json";
    const PREVIOUS_MODEL_INFO: &str = "model.previous.json";
    const RESULT: &str = "result.json";
    const BACKBONE: &str = "backbone.safetensors";
    const ENCODER: &str = "backbone.onnx";
    const PROJECTION: &str = "projection.safetensors";
    const FOLDED_HEAD: &str = "head.safetensors";
    const MARGINS: &str = "margins.json";
    const THUMBNAILS: &str = "thumbnails.safetensors";
    const TIMING: &str = "timing.jsonl";
    const TENSORBOARD: &str = "tensorboard";
    const FEATURES: &str = "features";
    const PREPARED: &str = "prepared";

    /// The paths of the run in `folder`, which need not exist.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The run's folder, which nothing below it leaves.
    pub fn root(&self) -> ConfinedPath {
        ConfinedPath::root(&self.folder)
    }

    /// One of its files.
    ///
    /// # Errors
    /// If the name of predictions is not a plain one.
    pub fn file(&self, file: RunFile<'_>) -> Result<ConfinedPath, FileError> {
        Ok(match file {
            RunFile::Recipe => self.root().join(Self::RECIPE),
            RunFile::Environment => self.root().join(Self::ENVIRONMENT),
            RunFile::Summary => self.root().join(Self::SUMMARY),
            RunFile::Split => self.root().join(Self::SPLIT),
            RunFile::Model => self.root().join(Self::MODEL),
            RunFile::ModelInfo => self.root().join(Self::MODEL_INFO),
            RunFile::PreviousModelInfo => self.root().join(Self::PREVIOUS_MODEL_INFO),
            RunFile::Result => self.root().join(Self::RESULT),
            RunFile::Backbone => self.root().join(Self::BACKBONE),
            RunFile::Encoder => self.root().join(Self::ENCODER),
            RunFile::Projection => self.root().join(Self::PROJECTION),
            RunFile::FoldedHead => self.root().join(Self::FOLDED_HEAD),
            RunFile::Margins => self.root().join(Self::MARGINS),
            RunFile::Thumbnails => self.root().join(Self::THUMBNAILS),
            RunFile::Predictions(name) if is_plain(name) => self.predictions().join(name),
            RunFile::Predictions(name) => {
                let problem = format!("{name:?} is not a valid name for predictions");
                let hint = "use lower-case letters, digits, '.', '-' and '_'";
                return Err(FileError::new(self.predictions(), FileProblem::Content(problem)).hint(hint));
            }
        })
    }

    /// The file of events.
    pub fn events(&self) -> ConfinedPath {
        self.root().join(Self::EVENTS)
    }

    /// The file of the pace: the only one that depends on the clock.
    pub fn timing(&self) -> ConfinedPath {
        self.root().join(Self::TIMING)
    }

    /// The folder of TensorBoard's files.
    pub fn tensorboard(&self) -> ConfinedPath {
        self.root().join(Self::TENSORBOARD)
    }

    /// The prepared dataset, if the run prepared it itself.
    pub fn prepared(&self) -> ConfinedPath {
        self.root().join(Self::PREPARED)
    }

    /// The cache of features, if the run has its own.
    pub fn features(&self) -> ConfinedPath {
        self.root().join(Self::FEATURES)
    }

    /// The folder of predictions.
    pub fn predictions(&self) -> ConfinedPath {
        self.root().join(Self::PREDICTIONS)
    }

    /// The folder of checkpoints.
    pub fn checkpoints(&self) -> ConfinedPath {
        self.root().join(Self::CHECKPOINTS)
    }

    pub(crate) fn lock(&self) -> ConfinedPath {
        self.root().join(Self::LOCK)
    }

    pub(crate) fn marker(&self) -> ConfinedPath {
        self.root().join(Self::MARKER)
    }

    /// Whether a file of this name is written as a whole into the folder itself.
    pub(super) fn is_own(name: &str) -> bool {
        [
            Self::MARKER,
            Self::RECIPE,
            Self::ENVIRONMENT,
            Self::SUMMARY,
            Self::SPLIT,
            Self::MODEL,
            Self::MODEL_INFO,
            Self::PREVIOUS_MODEL_INFO,
            Self::RESULT,
            Self::BACKBONE,
            Self::ENCODER,
            Self::PROJECTION,
            Self::FOLDED_HEAD,
            Self::MARGINS,
            Self::THUMBNAILS,
        ]
        .contains(&name)
    }
}

/// Whether `name` is a plain name of a file, the same on every system: lower-case letters, digits, `.`, `-` and
/// `_`, not more than 64 of them, no dot in front, which scratch names have.
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
        for bad in [
            "",
            ".",
            "..",
            ".a",
            "a/b",
            "../a",
            "/a",
            "a\\b",
            "C:a",
            "A",
            "a\0",
            "ä",
            "a b",
            ".a.tmp-1-2",
            &long,
        ] {
            assert!(!is_plain(bad), "{bad}");
            assert!(Paths::new("run").file(RunFile::Predictions(bad)).is_err(), "{bad}");
        }
    }
}
