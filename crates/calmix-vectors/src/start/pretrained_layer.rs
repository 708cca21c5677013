//! The layer of a recipe that pretrained weights set: their network, and the images that they expect.

use std::path::Path;

use calmix_io::error::FileError;
use calmix_recipe::Layers;
use calmix_run::weights_file::WeightsFile;
use calmix_run::weights_folder::WeightsFolder;
use toml::Value;

/// Adds the configuration of the pretrained weights that the layers name by `network.weights`, if any: above our recipes,
/// below everything that the user sets. `config.json` takes precedence over the metadata of the weights.
///
/// # Errors
/// If there are no such weights, or they cannot be used.
pub fn with_pretrained(layers: Layers, folder: &WeightsFolder) -> Result<Layers, FileError> {
    let Some(named) = layers.word("network.weights").filter(|named| !named.is_empty()) else {
        return Ok(layers);
    };
    let file = WeightsFile::read(&folder.find(named)?)?;
    let frozen = layers.word("network.train") == Some("head");
    Ok(layers.pretrained(said(&file, frozen)))
}

/// A frozen backbone gets images of the recipe's size, since smaller ones take a fraction of the time.
fn said(file: &WeightsFile, frozen: bool) -> Vec<(&Path, &'static str, Value)> {
    let word = |word: &Option<String>| word.clone().map(Value::String);
    let channels = |numbers: [f64; 3]| Value::Array(numbers.map(Value::Float).to_vec());
    let mut said = Vec::new();
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
        said.extend(given);
    }
    said.push((&file.path, "network.weights_hash", Value::String(file.blake3())));
    said
}
