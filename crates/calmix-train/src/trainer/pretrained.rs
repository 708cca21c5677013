//! Where a run begins that does not begin from random weights.

use std::path::{Path, PathBuf};

use calmix_engine::engine::Engine;
use calmix_engine::error::EngineError;
use calmix_engine::network::Network;
use calmix_engine::weights::WeightsError;
use calmix_run::error::{FileError, FileProblem};
use calmix_run::safe_open;

use super::error::TrainError;
use crate::recipe::NetworkSection;

/// Room for the classifier that a file may have: 30,000 classes of 2,048 features.
const CLASSIFIER: u64 = 256 << 20;

/// What pickles are called. calmix never reads them: they run code.
const PICKLES: [&str; 5] = ["pth", "pt", "bin", "ckpt", "pkl"];

/// A file of weights that the recipe names, if it names one.
pub(super) struct Pretrained {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Pretrained {
    /// Reads the file, and refuses what is not a backbone of the recipe's network.
    pub(super) fn read(section: &NetworkSection) -> Result<Option<Self>, TrainError> {
        if section.weights.is_empty() {
            return Ok(None);
        }
        let path = Path::new(&section.weights);
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if PICKLES.contains(&extension.to_lowercase().as_str()) {
            let problem =
                FileProblem::Format("a pickle, which can run code: calmix does not read it".to_owned());
            return Err(TrainError::Pretrained(FileError::new(path, problem).hint(CONVERT)));
        }
        // The user's own path: a link is followed, as for datasets.
        let target =
            path.canonicalize().map_err(|error| TrainError::Pretrained(FileError::new(path, error)))?;
        let network = Network::new(section.name, section.block, 1);
        let longest = network.longest_weights() + CLASSIFIER;
        let bytes = safe_open::read(&target, longest).map_err(TrainError::Pretrained)?;
        let pretrained = Self { path: path.to_owned(), bytes };
        network.check_backbone(&pretrained.bytes).map_err(|error| pretrained.refused(&error))?;
        Ok(Some(pretrained))
    }

    /// Gives an engine the backbone.
    pub(super) fn start(&self, engine: &mut Engine) -> Result<(), TrainError> {
        engine.start_from(&self.bytes).map_err(|error| match error {
            EngineError::Weights(error) => self.refused(&error),
            error => error.into(),
        })
    }

    fn refused(&self, error: &WeightsError) -> TrainError {
        let problem = FileProblem::Content(error.to_string());
        let hint = "network.name has to be the network that the file is of, under timm's names";
        TrainError::Pretrained(FileError::new(&self.path, problem).hint(hint))
    }
}

const CONVERT: &str = "convert it once: python -c \"import torch, safetensors.torch as s; \
                       s.save_file({k: v.contiguous() for k, v in torch.load('IN.pth', weights_only=True).items()}, \
                       'OUT.safetensors')\"";
