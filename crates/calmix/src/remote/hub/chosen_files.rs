//! The choice of the files in a repository that are a model for calmix.

use std::path::Path;

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_lifecycle::pretrained::MAX_ENCODER_BYTES;
use calmix_recipe::network::Architecture;
use calmix_run::pretrained::config::{CONFIG, MAX_CONFIG_BYTES, PretrainedConfig};
use calmix_run::pretrained::encoder_config::PREPROCESSOR;
use calmix_run::pretrained::weights_file::is_pickle;

use super::listing::{HubFile, Listing};
use super::repository::Repository;
use crate::error::CliError;
use crate::output::format::{bytes, grouped};

/// The names of weight files in the weights folder.
const SAFETENSORS: &str = "model.safetensors";
const ONNX: &str = "model.onnx";

/// The paths of ONNX models in repositories, in order of preference. In those of CLIP and SigLIP, the first is the image encoder
/// alone, whereas `model.onnx` also needs a text.
const ONNX_PLACES: [&str; 3] = ["onnx/vision_model.onnx", "onnx/model.onnx", "model.onnx"];

/// Suffixes of files with the weights of an ONNX model: `model.onnx_data` of optimum, `model.onnx.data` of PyTorch.
const DATA_SUFFIXES: [&str; 2] = ["_data", ".data"];

/// The maximum number of files with weights of one model.
const MAX_DATA_FILES: usize = 100;

const LICENCES: [&str; 3] = ["LICENSE", "LICENSE.txt", "LICENSE.md"];
const MAX_LICENCE_BYTES: u64 = 1 << 20;

/// The maximum number of a repository's models that an error names.
const MAX_NAMED: usize = 8;

/// The kind of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelKind {
    /// Weights of a network that calmix builds.
    Safetensors,
    /// An encoder that another program exported.
    Onnx,
}

/// A model and the files that belong to it; the first is the model itself.
#[derive(Debug)]
pub(crate) struct ChosenFiles {
    pub(crate) kind: ModelKind,
    pub(crate) files: Vec<ChosenFile>,
}

/// A file of the repository, and its name in the weights folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChosenFile {
    pub(crate) file: HubFile,
    pub(crate) stored: String,
}

impl ChosenFiles {
    /// Chooses the model that `requested` names, or the one that calmix can use according to the repository's `config.json`.
    pub(crate) fn choose(
        repository: &Repository,
        listing: &Listing,
        config: Option<&[u8]>,
        requested: Option<&str>,
    ) -> Result<Self, CliError> {
        let (kind, model) = match requested {
            Some(path) => requested_model(repository, listing, path)?,
            None => {
                usable_model(listing, config).ok_or_else(|| no_model_error(repository, listing, config))?
            }
        };
        let stored = match kind {
            ModelKind::Safetensors => SAFETENSORS,
            ModelKind::Onnx => ONNX,
        };
        let mut files = vec![ChosenFile { file: model.clone(), stored: stored.to_owned() }];
        let (folder, name) = model.path.rsplit_once('/').unwrap_or(("", &model.path));
        let beside = |name: &str| {
            if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
        };
        if kind == ModelKind::Onnx {
            let start = beside(name);
            for file in &listing.files {
                let rest = file.path.strip_prefix(&start).unwrap_or_default();
                if DATA_SUFFIXES.iter().any(|data| rest.starts_with(data)) && !rest.contains('/') {
                    files.push(ChosenFile { file: file.clone(), stored: format!("{name}{rest}") });
                }
            }
        }
        if files.len() > MAX_DATA_FILES {
            let message =
                format!("{repository}: {} has weights in {} files", shown(&model.path), files.len() - 1);
            return Err(CliError::invalid(message).hint(named_models(listing)));
        }
        check_size(repository, &files, MAX_ENCODER_BYTES)?;
        let configs = match kind {
            ModelKind::Safetensors => &[CONFIG][..],
            ModelKind::Onnx => &[PREPROCESSOR, CONFIG],
        };
        for config in configs {
            // The file may be beside the model or in the root of the repository.
            let found = listing.file(&beside(config)).or_else(|| listing.file(config));
            files.extend(found.map(|file| ChosenFile { file: file.clone(), stored: (*config).to_owned() }));
        }
        let licence = LICENCES.iter().find_map(|name| listing.file(name));
        files.extend(licence.map(|file| ChosenFile { file: file.clone(), stored: LICENCES[0].to_owned() }));
        for file in &files {
            let limit = match file.stored.as_str() {
                CONFIG | PREPROCESSOR => MAX_CONFIG_BYTES,
                "LICENSE" => MAX_LICENCE_BYTES,
                _ => MAX_ENCODER_BYTES,
            };
            check_size(repository, std::slice::from_ref(file), limit)?;
        }
        Ok(Self { kind, files })
    }

    /// Returns the total size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.file.bytes).sum()
    }
}

fn check_size(repository: &Repository, files: &[ChosenFile], limit: u64) -> Result<(), CliError> {
    let total = files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.file.bytes));
    if total <= limit {
        return Ok(());
    }
    let Some(first) = files.first() else { return Ok(()) };
    let message = format!(
        "{repository}: {} has {}, and calmix reads at most {}",
        shown(&first.file.path),
        bytes(total),
        bytes(limit)
    );
    Err(CliError::invalid(message).hint("choose a smaller model of the same family"))
}

/// Returns the model that the user named.
fn requested_model<'a>(
    repository: &Repository,
    listing: &'a Listing,
    path: &str,
) -> Result<(ModelKind, &'a HubFile), CliError> {
    let Some(kind) = kind_of(path) else {
        if is_pickle(Path::new(path)) {
            let message = format!("{}: a pickle, which can run code: calmix does not read it", shown(path));
            return Err(CliError::invalid(message).hint(export_hint(repository)));
        }
        let message = format!("{}: neither an ONNX model nor safetensors", shown(path));
        return Err(CliError::invalid(message).hint(named_models(listing)));
    };
    let file = listing.file(path).ok_or_else(|| {
        let message = format!("{repository} has no file {} at commit {}", shown(path), listing.commit);
        CliError::invalid(message).hint(named_models(listing))
    })?;
    Ok((kind, file))
}

/// Returns the kind of a model file by its name; `None` for other files.
fn kind_of(path: &str) -> Option<ModelKind> {
    match Path::new(path).extension()?.to_str()? {
        "onnx" => Some(ModelKind::Onnx),
        "safetensors" => Some(ModelKind::Safetensors),
        _ => None,
    }
}

/// Returns the model that calmix can use: weights of a network that it builds, or else an ONNX model.
fn usable_model<'a>(listing: &'a Listing, config: Option<&[u8]>) -> Option<(ModelKind, &'a HubFile)> {
    let config = config.and_then(|text| PretrainedConfig::parse(text).ok());
    let is_known = config
        .and_then(|config| config.architecture)
        .is_some_and(|name| name.parse::<Architecture>().is_ok());
    let weights = listing.file(SAFETENSORS).filter(|_| is_known);
    let weights = weights.map(|file| (ModelKind::Safetensors, file));
    let onnx = || ONNX_PLACES.iter().find_map(|place| listing.file(place));
    weights.or_else(|| Some((ModelKind::Onnx, onnx()?)))
}

/// Explains why a repository has no model for calmix, with a hint.
fn no_model_error(repository: &Repository, listing: &Listing, config: Option<&[u8]>) -> CliError {
    if listing.files.iter().any(|file| kind_of(&file.path) == Some(ModelKind::Onnx)) {
        let message = format!("{repository} has neither onnx/model.onnx nor model.onnx");
        return CliError::invalid(message).hint(named_models(listing));
    }
    let pickle = listing.files.iter().find(|file| is_pickle(Path::new(&file.path)));
    let message = if listing.file(SAFETENSORS).is_some() {
        let network = match config.map(PretrainedConfig::parse) {
            Some(Err(error)) => format!("its config.json is not for calmix: {error}"),
            Some(Ok(PretrainedConfig { architecture: Some(name), .. })) => {
                format!("calmix does not build the network {}", shown(name))
            }
            _ => "its config.json names no network that calmix builds".to_owned(),
        };
        format!("{repository} has weights, but no ONNX model, and {network}")
    } else if let Some(pickle) = pickle {
        let name = shown(&pickle.path);
        format!("{repository} has only pickles ({name}), which can run code: calmix does not read them")
    } else {
        format!("{repository} has no model: neither {SAFETENSORS} nor {}", ONNX_PLACES[1])
    };
    CliError::invalid(message).hint(export_hint(repository))
}

/// Explains how to convert a PyTorch model to one that calmix reads.
pub(crate) fn export_hint(repository: &Repository) -> String {
    format!(
        "look for {} under onnx-community, or export it: `optimum-cli export onnx --opset 17 --model {repository} FOLDER`, \
         then --set network.weights=FOLDER",
        repository.name
    )
}

/// Lists the models of a repository for the user to choose from.
fn named_models(listing: &Listing) -> String {
    let paths = listing.files.iter().map(|file| file.path.as_str());
    let models: Vec<&str> = paths.filter(|path| kind_of(path).is_some()).collect();
    if models.is_empty() {
        return "choose a repository with an ONNX model".to_owned();
    }
    let first: Vec<String> = models.iter().take(MAX_NAMED).map(shown).collect();
    let more = match models.len().saturating_sub(MAX_NAMED) as u64 {
        0 => String::new(),
        more => format!(" and {} more", grouped(more)),
    };
    format!("choose one with --file: {}{more}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[u8] = br#"{"architecture": "tf_efficientnet_lite0"}"#;

    fn listing(paths: &[&str]) -> Listing {
        let file = |path: &&str| HubFile { path: (*path).to_owned(), bytes: 10, hash: None };
        let files = paths.iter().map(file).collect();
        Listing { commit: "a".repeat(40), licence: None, files }
    }

    fn choose(
        paths: &[&str],
        config: Option<&[u8]>,
        requested: Option<&str>,
    ) -> Result<Vec<(String, String)>, CliError> {
        let repository = Repository::parse("owner/name").unwrap();
        let chosen = ChosenFiles::choose(&repository, &listing(paths), config, requested)?;
        Ok(chosen.files.into_iter().map(|file| (file.file.path, file.stored)).collect())
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(path, stored)| ((*path).to_owned(), (*stored).to_owned())).collect()
    }

    #[test]
    fn weights_of_known_network_come_first() {
        let files =
            ["LICENSE.md", "config.json", "model.safetensors", "onnx/model.onnx", "pytorch_model.bin"];
        assert_eq!(
            choose(&files, Some(KNOWN), None).unwrap(),
            pairs(&[
                ("model.safetensors", "model.safetensors"),
                ("config.json", "config.json"),
                ("LICENSE.md", "LICENSE"),
            ])
        );
        let transformers: &[u8] = br#"{"model_type": "dinov2"}"#;
        for config in [None, Some(transformers), Some(b"<html>".as_slice())] {
            assert_eq!(choose(&files, config, None).unwrap()[0].0, "onnx/model.onnx");
        }
    }

    #[test]
    fn onnx_model_brings_its_data_and_configuration() {
        let files = [
            "config.json",
            "onnx/model.onnx",
            "onnx/model.onnx_data",
            "onnx/model.onnx_data_1",
            "onnx/model_fp16.onnx",
            "onnx/model_fp16.onnx.data",
            "onnx/model.onnx_data/x",
            "model.onnx_data",
            "preprocessor_config.json",
        ];
        assert_eq!(
            choose(&files, None, None).unwrap(),
            pairs(&[
                ("onnx/model.onnx", "model.onnx"),
                ("onnx/model.onnx_data", "model.onnx_data"),
                ("onnx/model.onnx_data_1", "model.onnx_data_1"),
                ("preprocessor_config.json", "preprocessor_config.json"),
                ("config.json", "config.json"),
            ])
        );
        let requested = choose(&files, None, Some("onnx/model_fp16.onnx")).unwrap();
        // The model refers to its data by their own name.
        assert_eq!(
            requested[..2],
            pairs(&[
                ("onnx/model_fp16.onnx", "model.onnx"),
                ("onnx/model_fp16.onnx.data", "model_fp16.onnx.data")
            ])
        );
    }

    #[test]
    fn images_half_of_two_models_is_chosen() {
        let files = ["onnx/model.onnx", "onnx/text_model.onnx", "onnx/vision_model.onnx", "config.json"];
        let chosen = choose(&files, None, None).unwrap();
        assert_eq!(chosen[0], ("onnx/vision_model.onnx".to_owned(), "model.onnx".to_owned()));
    }

    #[test]
    fn repository_without_usable_model_is_refused() {
        let refused = |paths: &[&str], config: Option<&[u8]>, requested: Option<&str>| {
            choose(paths, config, requested).unwrap_err().to_string()
        };
        let pickles = ["config.json", "pytorch_model.bin"];
        assert!(refused(&pickles, None, None).contains("only pickles (pytorch_model.bin)"));
        assert!(refused(&pickles, None, Some("pytorch_model.bin")).contains("a pickle"));
        let vit: &[u8] = br#"{"architecture": "vit_small_patch16_224"}"#;
        assert!(refused(&["model.safetensors"], Some(vit), None).contains("vit_small_patch16_224"));
        assert!(refused(&["onnx/decoder.onnx"], None, None).contains("neither onnx/model.onnx"));
        assert!(refused(&["model.onnx"], None, Some("x.onnx")).contains("no file x.onnx"));
        assert!(refused(&["README.md"], None, Some("README.md")).contains("neither an ONNX model"));
        assert!(refused(&["README.md"], None, None).contains("no model"));
    }

    #[test]
    fn models_above_the_limit_are_refused() {
        let repository = Repository::parse("owner/name").unwrap();
        for (name, size) in
            [("model.onnx_data", MAX_ENCODER_BYTES), ("config.json", u64::MAX), ("LICENSE", 1 << 30)]
        {
            let mut listing = listing(&["model.onnx", name]);
            listing.files[1].bytes = size;
            let error = ChosenFiles::choose(&repository, &listing, None, None).unwrap_err().to_string();
            assert!(error.contains("calmix reads at most"), "{error}");
        }
    }
}
