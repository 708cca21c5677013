//! The file of an ONNX encoder that a recipe names: the model with all its weights in one piece, and the configuration beside it.

use std::path::{Path, PathBuf};

use calmix_io::confined_path::ConfinedPath;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::safe_open;
use calmix_onnx::foreign::{EncoderGraph, ForeignModel};
use calmix_recipe::encoder_spec::EncoderSpec;
use calmix_recipe::network::Pooling;
use calmix_run::model_info::ModelInfo;
use calmix_run::pretrained::config::{CONFIG, MAX_CONFIG_BYTES};
use calmix_run::pretrained::encoder_config::{EncoderConfig, PREPROCESSOR};

/// Bytes of the largest model, and of the largest file of its weights: as many as a file in this format can have.
pub const MAX_BYTES: u64 = 2 << 30;

/// An ONNX encoder that was read.
#[derive(Debug)]
pub struct EncoderFile {
    /// The model, as the user named it or as the folder has it.
    pub path: PathBuf,
    /// The model with all its weights: the file itself if it has them all.
    bytes: Vec<u8>,
    /// The blake3 of `bytes`.
    pub hash: String,
    /// The configuration beside it, and its file, if any.
    pub config: Option<(PathBuf, EncoderConfig)>,
}

/// What an encoder itself decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncoderChoice {
    /// The output with the features.
    pub output: String,
    /// How it becomes one vector per image.
    pub pooling: Pooling,
    /// The side of its images; `None` if the model takes any.
    pub side: Option<u32>,
}

impl EncoderFile {
    /// Reads a model of the user's own, its weights in other files of its folder, and its configuration.
    ///
    /// # Errors
    /// If it cannot be read, or is not an encoder that calmix can run.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        // The user's own path: links are followed up to the model, as caches of hubs have them.
        let target = path.canonicalize().map_err(|error| FileError::new(path, error))?;
        let bytes = safe_open::read(&target, MAX_BYTES).map_err(|mut error| {
            path.clone_into(&mut error.path);
            error
        })?;
        let folder = ConfinedPath::root(path.parent().unwrap_or(Path::new("")));
        let mut external = |name: &str| {
            // No links: the name comes from the file, and could lead anywhere.
            safe_open::read(folder.join(name), MAX_BYTES).map_err(|error| error.to_string())
        };
        let model = ForeignModel::read(&bytes, &mut external).map_err(|problem| refused(path, &problem))?;
        let bytes = model.self_contained(&bytes).into_owned();
        let hash = ModelInfo::hash(&bytes);
        Ok(Self { path: path.to_owned(), bytes, hash, config: config_beside(path)? })
    }

    /// Reads the copy of a model in the folder of a run, which may be untrusted: all its weights are in it, and nothing beside it
    /// is read.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_own(path: &Path) -> Result<Self, FileError> {
        let bytes = safe_open::read(path, MAX_BYTES)?;
        Self::of_run(path, bytes)
    }

    /// The same for bytes that were read already.
    ///
    /// # Errors
    /// If it is not an encoder that calmix can run.
    pub fn of_run(path: &Path, bytes: Vec<u8>) -> Result<Self, FileError> {
        let hash = ModelInfo::hash(&bytes);
        let file = Self { path: path.to_owned(), bytes, hash, config: None };
        file.model()?;
        Ok(file)
    }

    /// The model with all its weights.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Finds the output with the features, unless one is requested, and the side of the images.
    ///
    /// # Errors
    /// If the model does not take images, or which output has the features cannot be decided.
    pub fn choose(&self, output: Option<&str>, pooling: Option<Pooling>) -> Result<EncoderChoice, FileError> {
        let model = self.model()?;
        let input = model.image_input().map_err(|problem| refused(&self.path, &problem))?;
        let output = model.choose_output(output, pooling).map_err(|problem| refused(&self.path, &problem))?;
        let side = input.side.map(|(side, _)| side);
        Ok(EncoderChoice { output: output.name, pooling: output.pooling, side })
    }

    /// The graph from the bytes of images to features.
    ///
    /// # Errors
    /// If the model has no such output, or takes images of another size.
    pub fn graph(&self, spec: &EncoderSpec) -> Result<EncoderGraph, FileError> {
        self.model()?.encoder(spec).map_err(|problem| refused(&self.path, &problem))
    }

    fn model(&self) -> Result<ForeignModel<'_>, FileError> {
        let mut none = |_: &str| Err("the file of a run has all its weights".to_owned());
        ForeignModel::read(&self.bytes, &mut none).map_err(|problem| refused(&self.path, &problem))
    }
}

/// The configuration beside a model, or in the folder above `onnx/`.
fn config_beside(path: &Path) -> Result<Option<(PathBuf, EncoderConfig)>, FileError> {
    let beside = path.parent().unwrap_or(Path::new(""));
    let above = beside.parent().filter(|_| beside.ends_with("onnx"));
    for folder in [Some(beside), above].into_iter().flatten() {
        for name in [PREPROCESSOR, CONFIG] {
            let file = folder.join(name);
            let Ok(target) = file.canonicalize() else { continue };
            let text = safe_open::read(&target, MAX_CONFIG_BYTES)?;
            let config = if name == PREPROCESSOR {
                EncoderConfig::of_preprocessor(&text)
            } else {
                EncoderConfig::of_timm(&text)
            };
            let config = config.map_err(|error| {
                let hint = "correct it, or move it away and set its values in the recipe (augment.size, dataset.mean, dataset.std)";
                FileError::new(&file, FileProblem::Content(error.to_string())).hint(hint)
            })?;
            // The `config.json` of transformers has nothing about images.
            if config != EncoderConfig::default() {
                return Ok(Some((file, config)));
            }
        }
    }
    Ok(None)
}

fn refused(path: &Path, problem: &dyn std::fmt::Display) -> FileError {
    FileError::new(path, FileProblem::Content(problem.to_string()))
}
