//! The layer of a recipe that pretrained weights fill: which network they are of, and which images they expect.

use calmix_io::error::FileError;
use toml::Value;

use super::layer::{Layer, Setting};
use super::layers::Layers;
use super::origin::{Origin, Place};
use crate::weights_file::WeightsFile;
use crate::weights_folder::WeightsFolder;

impl Layers {
    /// Adds what the pretrained weights say that the layers name by `network.weights`, if they name any: above our recipes,
    /// below everything that the user sets. What stands in `config.json` counts before what stands in the weights.
    ///
    /// # Errors
    /// If there are no such weights, or they cannot be used.
    pub fn pretrained(mut self, folder: &WeightsFolder) -> Result<Self, FileError> {
        let Some(named) = self.word("network.weights").filter(|named| !named.is_empty()) else {
            return Ok(self);
        };
        let file = WeightsFile::read(&folder.find(named)?)?;
        let frozen = self.word("network.train") == Some("head");
        self.pretrained = vec![Layer::pretrained(&file, frozen)];
        Ok(self)
    }
}

impl Layer {
    /// A frozen backbone is shown images of the recipe's size: smaller ones take a fraction of the time.
    fn pretrained(file: &WeightsFile, frozen: bool) -> Self {
        let mut layer = Self::default();
        let mut said = |path: &str, value: Option<Value>, place: &std::path::Path| {
            let origin = Origin::Text { place: Place::Pretrained(place.to_owned()), line: None };
            let setting = |value| Setting { path: path.to_owned(), value, origin, comment: None };
            layer.settings.extend(value.map(setting));
        };
        let channels = |numbers: [f64; 3]| Value::Array(numbers.map(Value::Float).to_vec());
        for (place, config) in &file.configs {
            let word = |word: &Option<String>| word.clone().map(Value::String);
            said("network.name", word(&config.architecture), place);
            said("network.block", word(&config.block), place);
            said("network.stride", word(&config.stride), place);
            said("network.norm_eps", config.norm_eps.map(Value::Float), place);
            let size = config.size.filter(|_| !frozen);
            said("augment.size", size.map(|size| Value::Integer(size.into())), place);
            said("dataset.mean", config.mean.map(channels), place);
            said("dataset.std", config.std.map(channels), place);
        }
        said("network.weights_hash", Some(Value::String(file.blake3())), &file.path);
        layer
    }
}
