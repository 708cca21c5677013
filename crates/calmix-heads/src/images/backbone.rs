//! The frozen backbone of a recipe: a network that calmix builds, or an ONNX encoder.

use calmix_io::safe_open;
use calmix_lifecycle::pretrained::BackboneFile;
use calmix_lifecycle::pretrained::EncoderFile;
use calmix_lifecycle::pretrained::check_hash;
use calmix_ort::error::OrtError;
use calmix_ort::image_network::ImageNetwork;
use calmix_ort::session::RunOn;
use calmix_recipe::Recipe;
use calmix_recipe::model_spec::EncoderSpec;
use calmix_recipe::model_spec::ModelSpec;
use calmix_run::pretrained::weights_folder::WeightsFolder;
use calmix_run::run::{Paths, RunFile};
use serde_json::{Value, json};

use crate::error::HeadsError;

#[derive(Debug)]
pub enum Backbone {
    /// A network that calmix builds, with its weights.
    Network(ModelSpec, BackboneFile),
    Encoder(EncoderSpec, EncoderFile),
}

impl Backbone {
    pub fn read(recipe: &Recipe) -> Result<Self, HeadsError> {
        let network = &recipe.network;
        if let Some(spec) = EncoderSpec::of(recipe) {
            let found = WeightsFolder::of_user().find_encoder(&network.weights);
            let path = found.unwrap_or_else(|| network.weights.clone().into());
            let file = EncoderFile::read(&path).map_err(HeadsError::pretrained)?;
            return Self::encoder(spec, file, &network.weights_hash);
        }
        let file = BackboneFile::read(network)?.ok_or_else(|| {
            HeadsError::unsupported("network.train = \"head\" needs network.weights".to_owned())
        })?;
        Ok(Self::Network(ModelSpec::from(recipe), file))
    }

    /// Reads the run's own copy of the backbone; if there is none yet, the file that the recipe names.
    pub fn of_run(recipe: &Recipe, paths: &Paths) -> Result<Self, HeadsError> {
        let encoder = EncoderSpec::of(recipe);
        let path = paths.file(if encoder.is_some() { RunFile::Encoder } else { RunFile::Backbone })?;
        if !safe_open::exists(&path) {
            return Self::read(recipe);
        }
        let network = &recipe.network;
        match encoder {
            Some(spec) => {
                let file = EncoderFile::read_from_run(&path).map_err(HeadsError::pretrained)?;
                Self::encoder(spec, file, &network.weights_hash)
            }
            None => Ok(Self::Network(ModelSpec::from(recipe), BackboneFile::read_from_run(network, &path)?)),
        }
    }

    fn encoder(spec: EncoderSpec, file: EncoderFile, wanted: &str) -> Result<Self, HeadsError> {
        check_hash(&file.path, &file.hash, wanted)?;
        // Check now that the model has this output and takes images of this size.
        file.graph(&spec).map_err(HeadsError::pretrained)?;
        Ok(Self::Encoder(spec, file))
    }

    /// Returns the blake3 hash of the file.
    pub fn hash(&self) -> &str {
        match self {
            Self::Network(_, file) => &file.hash,
            Self::Encoder(_, file) => &file.hash,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Network(_, file) => file.bytes(),
            Self::Encoder(_, file) => file.bytes(),
        }
    }

    pub(crate) fn run_file(&self) -> RunFile<'static> {
        match self {
            Self::Network(..) => RunFile::Backbone,
            Self::Encoder(..) => RunFile::Encoder,
        }
    }

    /// Returns the encoder, unless the backbone is a network.
    pub(crate) fn encoder_spec(&self) -> Option<&EncoderSpec> {
        match self {
            Self::Network(..) => None,
            Self::Encoder(spec, _) => Some(spec),
        }
    }

    /// Returns the part of the identity of a feature cache that depends on the backbone.
    pub(crate) fn identity(&self, recipe: &Recipe) -> Value {
        let network = &recipe.network;
        match self {
            Self::Network(_, file) => json!({
                "weights": file.hash,
                "network": network.name,
                "block": network.block.to_string(),
                "stride": network.stride.to_string(),
                "norm_eps": network.norm_eps,
                "mean": recipe.dataset.mean,
                "std": recipe.dataset.std,
            }),
            Self::Encoder(spec, file) => json!({ "onnx": file.hash, "encoder": spec }),
        }
    }

    /// Returns the number of features of an image. An encoder whose file does not declare it is run once.
    pub(crate) fn width(&self, run_on: RunOn) -> Result<usize, HeadsError> {
        match self {
            Self::Network(model, _) => Ok(ImageNetwork::width_of(model)),
            Self::Encoder(spec, file) => {
                let graph = file.graph(spec).map_err(HeadsError::pretrained)?;
                match graph.width {
                    Some(width) => Ok(width),
                    None => Ok(self.network(run_on)?.feature_width()),
                }
            }
        }
    }

    pub(crate) fn network(&self, run_on: RunOn) -> Result<ImageNetwork, HeadsError> {
        match self {
            Self::Network(model, file) => {
                ImageNetwork::backbone(model, file.bytes(), run_on).map_err(|error| match error {
                    OrtError::Weights(problem) => file.refused(&problem).into(),
                    error => error.into(),
                })
            }
            Self::Encoder(spec, file) => {
                let graph = file.graph(spec).map_err(HeadsError::pretrained)?;
                Ok(ImageNetwork::encoder(spec, &graph, run_on)?)
            }
        }
    }
}
