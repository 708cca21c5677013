//! A file of pretrained weights and its configuration.

use std::path::{Path, PathBuf};

use calmix_io::error::{FileError, FileProblem};
use calmix_io::safe_open;
use calmix_recipe::network::layout::Layout;
use calmix_recipe::network::weights::check_backbone;
use calmix_recipe::network::{Architecture, FirstBlock};

use crate::model_info::ModelInfo;
use crate::pretrained::config::{CONFIG, MAX_CONFIG_BYTES, PretrainedConfig};

/// The maximum size of a file to read, in bytes.
const MAX_WEIGHTS_BYTES: u64 = 2 << 30;

const PICKLES: [&str; 5] = ["pth", "pt", "bin", "ckpt", "pkl"];

/// The extension of weight files.
const SAFETENSORS: &str = "safetensors";

const CONVERT: &str = "convert it once: python -c \"import torch, safetensors.torch as s; \
                       s.save_file({k: v.contiguous() for k, v in torch.load('IN.pth', weights_only=True).items()}, \
                       'OUT.safetensors')\"";

/// A file of pretrained weights, read into memory.
#[derive(Debug)]
pub struct WeightsFile {
    /// The path of the file, as the user gave it.
    pub path: PathBuf,
    /// The content of the file.
    pub bytes: Vec<u8>,
    /// The configurations in the metadata and in the `config.json` beside the file, each with its path; the later one takes
    /// precedence.
    pub configs: Vec<(PathBuf, PretrainedConfig)>,
    /// The content of the `config.json` beside it, if any.
    pub config: Option<Vec<u8>>,
}

impl WeightsFile {
    /// Reads a file of weights and the `config.json` beside it.
    ///
    /// # Errors
    /// If it is a pickle, does not exist or is too long, or if its `config.json` or metadata are invalid.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        if is_pickle(path) {
            return Err(pickle(path));
        }
        let mut file = Self::parse(path, read_following(path, MAX_WEIGHTS_BYTES)?)?;
        file.config = read_beside(path, CONFIG, MAX_CONFIG_BYTES)?;
        if let Some(text) = &file.config {
            let beside = path.with_file_name(CONFIG);
            let parsed = PretrainedConfig::parse(text).map_err(|error| {
                let hint = "correct it, or move it away and set its values in the recipe";
                FileError::new(&beside, FileProblem::Content(error.to_string())).hint(hint)
            })?;
            file.configs.push((beside, parsed));
        }
        Ok(file)
    }

    /// Reads the copy of a file of weights in a run folder, which may be untrusted: links are refused, and no other file is
    /// read.
    pub fn read_from_run(path: &Path) -> Result<Self, FileError> {
        Self::parse(path, safe_open::read(path, MAX_WEIGHTS_BYTES)?)
    }

    fn parse(path: &Path, bytes: Vec<u8>) -> Result<Self, FileError> {
        // A zip file, as PyTorch writes it, or a bare pickle, under another name.
        if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"\x80\x02") {
            return Err(pickle(path));
        }
        let embedded = PretrainedConfig::embedded(&bytes);
        let embedded =
            embedded.map_err(|error| FileError::new(path, FileProblem::Content(error.to_string())))?;
        let configs = embedded.map(|config| (path.to_owned(), config)).into_iter().collect();
        Ok(Self { path: path.to_owned(), bytes, configs, config: None })
    }

    /// Returns its BLAKE3, in hexadecimal.
    pub fn blake3(&self) -> String {
        ModelInfo::hash(&self.bytes)
    }

    /// Returns a value from the last configuration that has it.
    pub fn configured<T>(&self, what: impl Fn(&PretrainedConfig) -> Option<T>) -> Option<T> {
        self.configs.iter().rev().find_map(|(_, config)| what(config))
    }

    /// Returns the network of the weights: the one in the configuration, or the one with the same tensors under timm's
    /// names.
    pub fn network(&self) -> Result<Architecture, FileError> {
        let refused = |path: &Path, problem: String| FileError::new(path, FileProblem::Content(problem));
        let of = |architecture: Architecture| Layout::of_network(architecture, FirstBlock::default(), 0);
        let mut named = None;
        for (path, config) in &self.configs {
            let Some(name) = &config.architecture else { continue };
            let architecture: Architecture =
                name.parse().map_err(|error: calmix_recipe::RecipeError| refused(path, error.to_string()))?;
            if let Err(error) = check_backbone(&of(architecture), &self.bytes) {
                return Err(refused(
                    path,
                    format!("names {architecture}, but the weights do not match: {error}"),
                ));
            }
            named = Some(architecture);
        }
        let known = || Architecture::timm().find(|&known| check_backbone(&of(known), &self.bytes).is_ok());
        named.or_else(known).ok_or_else(|| {
            let names: Vec<_> = Architecture::timm().map(|known| known.to_string()).collect();
            refused(&self.path, "not the weights of a network that calmix supports".to_owned())
                .hint(format!("calmix reads {}, with timm's tensor names", names.join(", ")))
        })
    }
}

/// Reads the file with this name beside another one, if it exists.
pub(crate) fn read_beside(path: &Path, name: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, FileError> {
    let beside = path.with_file_name(name);
    if !safe_open::exists(&beside) {
        return Ok(None);
    }
    read_following(&beside, max_bytes).map(Some)
}

/// Reads a path from the user: links are followed, as for datasets, because the caches of hubs consist of links.
fn read_following(path: &Path, max_bytes: u64) -> Result<Vec<u8>, FileError> {
    let target = path.canonicalize().map_err(|error| FileError::new(path, error))?;
    // Errors show the path that the user gave.
    safe_open::read(&target, max_bytes).map_err(|mut error| {
        path.clone_into(&mut error.path);
        error
    })
}

/// Returns whether a text looks like the path of a weight file rather than a name.
pub(crate) fn is_path(named: &str) -> bool {
    let path = Path::new(named);
    is_pickle(path) || is_named(path, &[SAFETENSORS]) || path.components().count() > 1 || path.is_file()
}

/// Returns whether a file is a pickle by name. calmix never reads pickles, since they can run code.
pub fn is_pickle(path: &Path) -> bool {
    is_named(path, &PICKLES)
}

fn is_named(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    extensions.contains(&extension.to_lowercase().as_str())
}

fn pickle(path: &Path) -> FileError {
    let problem = FileProblem::Format(
        "a pickle, which can run code when it is read: calmix does not read it".to_owned(),
    );
    FileError::new(path, problem).hint(CONVERT)
}
