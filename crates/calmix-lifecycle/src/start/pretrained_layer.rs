//! The recipe layer of pretrained weights: their network or encoder, and the images that they expect.

use std::path::{Path, PathBuf};

use calmix_io::error::{FileError, FileProblem};
use calmix_recipe::Layers;
use calmix_run::pretrained::weights_file::WeightsFile;
use calmix_run::pretrained::weights_folder::WeightsFolder;
use toml::Value;

use crate::pretrained::EncoderFile;

/// Adds the configuration of the pretrained weights that `network.weights` names, if any: above the built-in recipes, below the
/// user's settings. `config.json` takes precedence over the metadata of the weights.
pub fn with_pretrained(layers: Layers, folder: &WeightsFolder) -> Result<Layers, FileError> {
    let Some(named) = layers.word("network.weights").filter(|named| !named.is_empty()) else {
        return Ok(layers);
    };
    let frozen = layers.word("network.train") == Some("head");
    let Some(path) = folder.find_encoder(named) else {
        let file = WeightsFile::read(&folder.find(named)?)?;
        return Ok(layers.pretrained(weights_settings(&file, frozen)));
    };
    if !frozen {
        let problem =
            FileProblem::Content("an ONNX encoder can only be the frozen backbone of a head".to_owned());
        let hint = "train a head on it: `calmix train head-folder`, or network.train = \"head\"";
        return Err(FileError::new(path, problem).hint(hint));
    }
    let file = EncoderFile::read(&path)?;
    let settings = encoder_settings(&layers, &file)?;
    Ok(layers.pretrained(settings.iter().map(|(place, key, value)| (place.as_path(), *key, value.clone()))))
}

/// Returns the settings in the configurations. A frozen backbone gets images of the recipe's size instead, since smaller ones
/// take a fraction of the time.
fn weights_settings(file: &WeightsFile, frozen: bool) -> Vec<(&Path, &'static str, Value)> {
    let word = |word: &Option<String>| word.clone().map(Value::String);
    let channels = |numbers: [f64; 3]| Value::Array(numbers.map(Value::Float).to_vec());
    let mut settings = Vec::new();
    for (place, config) in &file.configs {
        let size = config.size.filter(|_| !frozen);
        let values = [
            ("network.name", word(&config.architecture)),
            ("network.block", word(&config.block)),
            ("network.stride", word(&config.stride)),
            ("network.norm_eps", config.norm_eps.map(Value::Float)),
            ("augment.size", size.map(|size| Value::Integer(size.into()))),
            ("dataset.mean", config.mean.map(channels)),
            ("dataset.std", config.std.map(channels)),
        ];
        let given = values.into_iter().filter_map(|(key, value)| Some((place.as_path(), key, value?)));
        settings.extend(given);
    }
    settings.push((&file.path, "network.weights_hash", Value::String(file.blake3())));
    settings
}

/// Returns the settings that an encoder fixes itself, and those of the configuration beside it.
fn encoder_settings(
    layers: &Layers,
    file: &EncoderFile,
) -> Result<Vec<(PathBuf, &'static str, Value)>, FileError> {
    let output = layers.word("network.output").filter(|output| !output.is_empty());
    let pooling =
        layers.is_set_by_user("network.pooling").then(|| layers.word("network.pooling")?.parse().ok());
    let choice = file.choose(output, pooling.flatten())?;
    let mut settings = vec![
        (file.path.clone(), "network.output", Value::String(choice.output)),
        (file.path.clone(), "network.pooling", Value::String(choice.pooling.to_string())),
        (file.path.clone(), "network.weights_hash", Value::String(file.hash.clone())),
    ];
    let pixels = |side: u32| Value::Integer(side.into());
    let configured = file.config.as_ref().and_then(|(_, config)| config.size);
    if let Some((place, config)) = &file.config {
        let channels = |numbers: [f64; 3]| Value::Array(numbers.map(Value::Float).to_vec());
        // Ignore a crop whose size is not that of the model's images.
        let resize = config.resize.filter(|_| choice.side.is_none() || choice.side == config.size);
        let values = [
            ("augment.size", config.size.map(pixels)),
            ("augment.evaluation_resize", resize.map(pixels)),
            ("augment.filter", config.filter.clone().map(Value::String)),
            ("dataset.mean", config.mean.map(channels)),
            ("dataset.std", config.std.map(channels)),
        ];
        settings.extend(values.into_iter().filter_map(|(key, value)| Some((place.clone(), key, value?))));
    }
    if let Some(side) = choice.side {
        settings.push((file.path.clone(), "augment.size", pixels(side)));
    } else if configured.is_none() && !layers.is_set_by_user("augment.size") {
        let problem = "it takes images of any size, and no preprocessor_config.json beside it says which it was trained on";
        let hint = "--set augment.size=224, if these are its pixels per side";
        return Err(FileError::new(&file.path, FileProblem::Content(problem.to_owned())).hint(hint));
    }
    Ok(settings)
}
