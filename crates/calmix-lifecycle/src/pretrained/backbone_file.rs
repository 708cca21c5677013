//! The file of pretrained weights that a run starts from, or that is its frozen backbone.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use calmix_io::error::{FileError, FileProblem};
use calmix_recipe::NetworkSection;
use calmix_recipe::network::layout::Layout;
use calmix_recipe::network::weights::check_backbone;
use calmix_recipe::network::{Architecture, BottleneckStride, FirstBlock};
use calmix_run::pretrained::config::PretrainedConfig;
use calmix_run::pretrained::weights_file::WeightsFile;
use calmix_run::pretrained::weights_folder::WeightsFolder;

use super::weights_hash::check_hash;
use crate::error::LifecycleError;

/// A file of weights that the recipe names.
#[derive(Debug)]
pub struct BackboneFile {
    file: WeightsFile,
    /// Its blake3.
    pub hash: String,
}

impl BackboneFile {
    /// Reads the file that the recipe names, if it names one.
    ///
    /// # Errors
    /// If it cannot be read, or is not a backbone of the recipe's network.
    pub fn read(section: &NetworkSection) -> Result<Option<Self>, LifecycleError> {
        if section.weights.is_empty() {
            return Ok(None);
        }
        let path = WeightsFolder::of_user().find(&section.weights).map_err(LifecycleError::pretrained)?;
        let file = WeightsFile::read(&path).map_err(LifecycleError::pretrained)?;
        Self::checked(section, file).map(Some)
    }

    /// Reads the copy of the file in the folder of a run.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_own(section: &NetworkSection, path: &Path) -> Result<Self, LifecycleError> {
        let file = WeightsFile::read_own(path).map_err(LifecycleError::pretrained)?;
        Self::checked(section, file)
    }

    fn checked(section: &NetworkSection, file: WeightsFile) -> Result<Self, LifecycleError> {
        let hash = file.blake3();
        check_hash(&file.path, &hash, &section.weights_hash)?;
        let backbone = Self { file, hash };
        let layout = Layout::of_network(section.name, section.block, 0);
        check_backbone(&layout, &backbone.file.bytes).map_err(|problem| backbone.refused(&problem))?;
        agree(&backbone.file.configs, section)?;
        Ok(backbone)
    }

    /// The whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.file.bytes
    }

    /// The error of a file whose tensors are not those of the recipe's network.
    pub fn refused(&self, problem: &dyn Display) -> LifecycleError {
        let problem = FileProblem::Content(problem.to_string());
        let hint = "set network.name to the network of this file; its tensors must have timm's names";
        LifecycleError::pretrained(FileError::new(&self.file.path, problem).hint(hint))
    }
}

/// Checks the config files against the recipe. Names and shapes of tensors are not enough: networks that compute differently
/// can share them.
fn agree(configs: &[(PathBuf, PretrainedConfig)], section: &NetworkSection) -> Result<(), LifecycleError> {
    let bottlenecks = section.name.has_bottlenecks();
    for (path, config) in configs {
        let block = config.block.as_deref().filter(|_| !bottlenecks);
        let stride = config.stride.as_deref().filter(|_| bottlenecks);
        let pairs = [
            (
                "network.name",
                config.architecture.as_deref().map(known::<Architecture>),
                section.name.to_string(),
            ),
            ("network.block", block.map(known::<FirstBlock>), section.block.to_string()),
            ("network.stride", stride.map(known::<BottleneckStride>), section.stride.to_string()),
        ];
        for (key, said, is) in pairs {
            let Some(said) = said.filter(|said| said.as_ref() != Some(&is)) else { continue };
            let told = said.as_deref().unwrap_or("a value that calmix does not know");
            let problem = format!("{key} is {told} here, but {is} in the recipe");
            let error = FileError::new(path, FileProblem::Content(problem));
            let hint = said.map_or_else(
                || "move it away if it does not belong to these weights".to_owned(),
                |said| format!("--set {key}={said}"),
            );
            return Err(LifecycleError::pretrained(error.hint(hint)));
        }
    }
    Ok(())
}

/// The current name of a word; `None` if calmix does not know it. The recipe of an untrusted run may name any file, so an
/// error must not repeat what the file contains.
fn known<T: FromStr + ToString>(word: &str) -> Option<String> {
    word.parse::<T>().ok().map(|known| known.to_string())
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
        assert!(agree(&keras, &section).is_ok(), "a wide ResNet has no such stride");
        section.name = "resnet50".parse().unwrap();
        let error = agree(&keras, &section).unwrap_err().to_string();
        let sentence =
            "config.json: network.stride is 1x1 here, but 3x3 in the recipe; --set network.stride=1x1";
        assert_eq!(error, sentence);
        section.stride = "1x1".parse().unwrap();
        assert!(agree(&keras, &section).is_ok());
        let other = [(PathBuf::from("config.json"), stride("3x3"))];
        assert!(agree(&other, &section).is_err());
    }
}
