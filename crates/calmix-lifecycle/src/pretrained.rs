//! The pretrained weights that a run starts from or uses as its frozen backbone: safetensors of a network that calmix builds, or
//! an ONNX encoder.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use calmix_io::confined_path::ConfinedPath;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::safe_open;
use calmix_onnx::foreign::{EncoderGraph, ForeignModel};
use calmix_recipe::NetworkSection;
use calmix_recipe::model_spec::EncoderSpec;
use calmix_recipe::network::layout::Layout;
use calmix_recipe::network::weights::check_backbone;
use calmix_recipe::network::{Architecture, BottleneckStride, FirstBlock, Pooling};
use calmix_run::model_info::ModelInfo;
use calmix_run::pretrained::config::{CONFIG, MAX_CONFIG_BYTES, PretrainedConfig};
use calmix_run::pretrained::encoder_config::{EncoderConfig, PREPROCESSOR};
use calmix_run::pretrained::weights_file::WeightsFile;
use calmix_run::pretrained::weights_folder::WeightsFolder;

use crate::error::LifecycleError;

/// The maximum size in bytes of a model and of each file of its weights, which is the limit of the format.
pub const MAX_ENCODER_BYTES: u64 = 2 << 30;

/// The file of weights that the recipe names.
#[derive(Debug)]
pub struct BackboneFile {
    file: WeightsFile,
    /// The blake3 hash of the file.
    pub hash: String,
}

impl BackboneFile {
    /// Reads the file that the recipe names, if any.
    pub fn read(section: &NetworkSection) -> Result<Option<Self>, LifecycleError> {
        if section.weights.is_empty() {
            return Ok(None);
        }
        let path = WeightsFolder::of_user().find(&section.weights).map_err(LifecycleError::pretrained)?;
        let file = WeightsFile::read(&path).map_err(LifecycleError::pretrained)?;
        Self::checked(section, file).map(Some)
    }

    /// Reads the copy of the file in a run's folder.
    pub fn read_from_run(section: &NetworkSection, path: &Path) -> Result<Self, LifecycleError> {
        let file = WeightsFile::read_from_run(path).map_err(LifecycleError::pretrained)?;
        Self::checked(section, file)
    }

    fn checked(section: &NetworkSection, file: WeightsFile) -> Result<Self, LifecycleError> {
        let hash = file.blake3();
        check_hash(&file.path, &hash, &section.weights_hash)?;
        let backbone = Self { file, hash };
        let layout = Layout::of_network(section.name, section.block, 0);
        check_backbone(&layout, &backbone.file.bytes).map_err(|problem| backbone.refused(&problem))?;
        check_configs(&backbone.file.configs, section)?;
        Ok(backbone)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.file.bytes
    }

    /// Returns the error for a file whose tensors are not those of the recipe's network.
    pub fn refused(&self, problem: &dyn Display) -> LifecycleError {
        let problem = FileProblem::Content(problem.to_string());
        let hint = "set network.name to the network of this file; its tensors must have timm's names";
        LifecycleError::pretrained(FileError::new(&self.file.path, problem).hint(hint))
    }
}

/// Checks the config files against the recipe. Names and shapes of tensors are not enough: networks that compute differently can
/// have the same.
fn check_configs(
    configs: &[(PathBuf, PretrainedConfig)],
    section: &NetworkSection,
) -> Result<(), LifecycleError> {
    let bottlenecks = section.name.has_bottlenecks();
    for (path, config) in configs {
        let block = config.block.as_deref().filter(|_| !bottlenecks);
        let stride = config.stride.as_deref().filter(|_| bottlenecks);
        let pairs = [
            (
                "network.name",
                config.architecture.as_deref().map(current_name::<Architecture>),
                section.name.to_string(),
            ),
            ("network.block", block.map(current_name::<FirstBlock>), section.block.to_string()),
            ("network.stride", stride.map(current_name::<BottleneckStride>), section.stride.to_string()),
        ];
        for (key, configured, wanted) in pairs {
            let Some(configured) = configured.filter(|value| value.as_ref() != Some(&wanted)) else {
                continue;
            };
            let shown = configured.as_deref().unwrap_or("a value that calmix does not know");
            let problem = format!("{key} is {shown} here, but {wanted} in the recipe");
            let error = FileError::new(path, FileProblem::Content(problem));
            let hint = configured.map_or_else(
                || "move it away if it does not belong to these weights".to_owned(),
                |value| format!("--set {key}={value}"),
            );
            return Err(LifecycleError::pretrained(error.hint(hint)));
        }
    }
    Ok(())
}

/// Returns the current spelling of a value; `None` if calmix does not know it. The recipe of an untrusted run may name any file,
/// so an error must not repeat the contents of the file.
fn current_name<T: FromStr + ToString>(word: &str) -> Option<String> {
    word.parse::<T>().ok().map(|parsed| parsed.to_string())
}

/// Refuses a file whose hash is not the one in the recipe.
pub fn check_hash(path: &Path, hash: &str, wanted: &str) -> Result<(), LifecycleError> {
    if wanted.is_empty() || wanted == hash {
        return Ok(());
    }
    let problem =
        format!("its BLAKE3 hash is {hash}, but network.weights_hash is {wanted}: this is a different file");
    Err(LifecycleError::pretrained(FileError::new(path, FileProblem::Changed(problem))))
}

#[derive(Debug)]
pub struct EncoderFile {
    /// The path that the user named, or that of the run's copy.
    pub path: PathBuf,
    /// The model with all its weights in one file.
    bytes: Vec<u8>,
    /// The blake3 hash of `bytes`.
    pub hash: String,
    /// The file of the configuration beside the model, and its contents, if there is one.
    pub config: Option<(PathBuf, EncoderConfig)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncoderChoice {
    pub output: String,
    pub pooling: Pooling,
    /// The side of its images in pixels; `None` if the model takes any size.
    pub side: Option<u32>,
}

impl EncoderFile {
    /// Reads a model of the user: its weights, which may be in other files of its folder, and its configuration.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        // The user chose this path, so links are followed up to the model: caches of model hubs consist of them.
        let target = path.canonicalize().map_err(|error| FileError::new(path, error))?;
        let bytes = safe_open::read(&target, MAX_ENCODER_BYTES).map_err(|mut error| {
            path.clone_into(&mut error.path);
            error
        })?;
        let folder = ConfinedPath::root(path.parent().unwrap_or(Path::new("")));
        let mut external = |name: &str| {
            // Follow no links: this name comes from the file and could lead anywhere.
            safe_open::read(folder.join(name), MAX_ENCODER_BYTES).map_err(|error| error.to_string())
        };
        let model = ForeignModel::read(&bytes, &mut external).map_err(|problem| refused(path, &problem))?;
        let bytes = model.self_contained(&bytes).into_owned();
        let hash = ModelInfo::hash(&bytes);
        Ok(Self { path: path.to_owned(), bytes, hash, config: config_beside(path)? })
    }

    /// Reads the copy of a model in a run's folder, which may be untrusted. The copy contains all weights, and no other file is
    /// read.
    pub fn read_from_run(path: &Path) -> Result<Self, FileError> {
        let bytes = safe_open::read(path, MAX_ENCODER_BYTES)?;
        Self::of_run(path, bytes)
    }

    /// Checks the bytes of a model in a run's folder.
    pub fn of_run(path: &Path, bytes: Vec<u8>) -> Result<Self, FileError> {
        let hash = ModelInfo::hash(&bytes);
        let file = Self { path: path.to_owned(), bytes, hash, config: None };
        file.model()?;
        Ok(file)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Chooses the output with the features, unless one is named, and the side of the images.
    pub fn choose(&self, output: Option<&str>, pooling: Option<Pooling>) -> Result<EncoderChoice, FileError> {
        let model = self.model()?;
        let input = model.image_input().map_err(|problem| refused(&self.path, &problem))?;
        let output = model.choose_output(output, pooling).map_err(|problem| refused(&self.path, &problem))?;
        let side = input.side.map(|(side, _)| side);
        Ok(EncoderChoice { output: output.name, pooling: output.pooling, side })
    }

    /// Returns the graph from the bytes of images to features.
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

/// Reads the configuration beside a model, or in the folder above `onnx/`.
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
            // transformers' `config.json` says nothing about images and reads as the default.
            if config != EncoderConfig::default() {
                return Ok(Some((file, config)));
            }
        }
    }
    Ok(None)
}

fn refused(path: &Path, problem: &dyn Display) -> FileError {
    FileError::new(path, FileProblem::Content(problem.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use calmix_recipe::Recipe;

    #[test]
    fn stride_that_contradicts_the_weights_is_refused() {
        let stride =
            |stride: &str| PretrainedConfig { stride: Some(stride.into()), ..PretrainedConfig::default() };
        let keras = [(PathBuf::from("config.json"), stride("1x1"))];
        let mut section = Recipe::default().network;
        assert!(check_configs(&keras, &section).is_ok(), "a wide ResNet has no such stride");
        section.name = "resnet50".parse().unwrap();
        let error = check_configs(&keras, &section).unwrap_err().to_string();
        let sentence =
            "config.json: network.stride is 1x1 here, but 3x3 in the recipe; --set network.stride=1x1";
        assert_eq!(error, sentence);
        section.stride = "1x1".parse().unwrap();
        assert!(check_configs(&keras, &section).is_ok());
        let other = [(PathBuf::from("config.json"), stride("3x3"))];
        assert!(check_configs(&other, &section).is_err());
    }
}
