//! The file `model.json`, which describes the weights in `model.safetensors` beside it.
//!
//! The weights alone do not identify their network, the classes of their outputs or the preprocessing of images. With this
//! file they can be used without the recipe, and a swapped, truncated or damaged file is detected. The metadata of the
//! weights hold the same description, for a file that is copied alone.

use calmix_head::network::HeadShape;
use calmix_io::class_names;
use calmix_metrics::fitted_calibrator::FittedCalibrator;
use calmix_metrics::held_out::HeldOut;
use calmix_recipe::Recipe;
use calmix_recipe::model_spec::EncoderSpec;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::network::HeadKind;
use calmix_recipe::precision::Precision;
use safetensors::{SafeTensorError, SafeTensors};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::error::RunError;
use crate::label_draws::LabelDraws;

/// The format that this version writes. Later formats may add fields, which older versions ignore.
pub const FORMAT: u32 = 5;

const KEY: &str = "calmix";

/// The maximum number of bytes that the metadata add to a file of weights.
pub const MAX_METADATA_BYTES: u64 = 16 << 20;

/// The network, classes, image preprocessing and calibration of a file of weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The format version of this file.
    pub format: u32,
    /// The BLAKE3 of `model.safetensors`, in hexadecimal; empty in the metadata of that file.
    pub blake3: String,
    /// The network and its images; `None` if the model reads vectors, or if its head is on an ONNX encoder.
    #[serde(flatten, deserialize_with = "deserialize_spec")]
    pub model: Option<ModelSpec>,
    /// The names of the classes, in the order of the logits.
    #[serde(deserialize_with = "class_names::deserialize")]
    pub classes: Vec<String>,
    /// The shorter side of an image before the centre crop, in pixels; 0 if the model reads vectors.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resize: u32,
    /// The resizing filter of images: `bilinear`; empty if the model reads vectors.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub filter: String,
    /// The shorter side to which larger images are shrunk first; `None` if the training images were not shrunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrink: Option<u32>,
    /// The head, if the model is a head on a frozen backbone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<HeadInfo>,
    /// The calibrator, and the labels that it was fitted on; `None` if there were too few labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<FittedCalibrator>,
    /// The scores of held-out labels, if any; without them, there is no coverage or precision guarantee.
    #[serde(default)]
    pub held_out: Option<HeldOut>,
    /// The BLAKE3 of the calibration and the scores of held-out labels, in hexadecimal. These can be fitted again later, so
    /// the metadata of the weights do not protect them. [`seal`](Self::seal) sets this.
    #[serde(default)]
    pub calibration_blake3: String,
    /// The BLAKE3 of `reference.safetensors`, in hexadecimal; empty if the model has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reference: String,
    /// How the labels were drawn that the model was trained on and that its guarantees rest on; missing if this is known of none.
    #[serde(default, skip_serializing_if = "LabelDraws::is_unknown")]
    pub label_draws: LabelDraws,
}

/// Deserialises the fields of a network, if any. An optional flattened field would also be `None` if one of its fields is
/// invalid.
fn deserialize_spec<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ModelSpec>, D::Error> {
    let fields = serde_json::Map::<String, Value>::deserialize(deserializer)?;
    if !fields.contains_key("network") && !fields.contains_key("size") {
        return Ok(None);
    }
    serde_json::from_value(Value::Object(fields)).map(Some).map_err(D::Error::custom)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The image format that a network expects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelFormat {
    /// The side of an image, in pixels.
    pub size: u32,
    /// The mean of red, green and blue, subtracted from pixel values between 0 and 1.
    pub mean: [f64; 3],
    /// The standard deviation of red, green and blue, by which pixel values are then divided.
    pub std: [f64; 3],
}

/// The largest number of units of a head on neighbours that is read: what a model file says decides how much is allocated.
const MAX_NEIGHBOURS: u32 = 1 << 17;

/// A model that is a head on a frozen backbone: `network` is then the backbone, and the weights are the head's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadInfo {
    /// The layers of the head.
    pub kind: HeadKind,
    /// The number format that the backbone computes in.
    pub precision: Precision,
    /// The runtime of the backbone with its version; empty if there is no backbone, or if an earlier version of calmix used
    /// libtorch.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub runtime: String,
    /// The number of features of the backbone.
    pub features: u32,
    /// The widths of the sets of features that a vector consists of; empty for one set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<u32>,
    /// The number of features after the projection.
    pub dimensions: u32,
    /// The number of units of the hidden layer of a head on neighbours; 0 if it is the head of `kind`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub neighbours: u32,
    /// The BLAKE3 of `backbone.safetensors` or `backbone.onnx`, in hexadecimal; empty if there is no backbone, because the
    /// head reads vectors.
    pub backbone: String,
    /// The encoder in `backbone.onnx`; `None` if the backbone is a network of calmix itself, or if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<EncoderSpec>,
    /// The BLAKE3 of `projection.safetensors`, in hexadecimal.
    pub projection: String,
}

impl HeadInfo {
    /// Returns the sizes of the head for this number of classes.
    pub fn shape(&self, classes: usize) -> HeadShape {
        let hidden = match self.neighbours {
            0 => self.kind.hidden(),
            units => Some(units.min(MAX_NEIGHBOURS) as usize),
        };
        HeadShape { width: self.dimensions as usize, hidden, classes }
    }

    /// Describes a head that may have another hidden layer than `kind`: one on neighbours.
    #[must_use]
    pub fn of_shape(self, shape: HeadShape) -> Self {
        let units = shape.hidden.filter(|_| shape.hidden != self.kind.hidden()).unwrap_or_default();
        Self { neighbours: units as u32, ..self }
    }

    /// Returns whether both describe the same head. Versions of a runtime only affect the last bits of features, so they may
    /// differ.
    fn is_same(&self, other: &Self) -> bool {
        *self == Self { runtime: self.runtime.clone(), ..other.clone() }
    }
}

impl ModelInfo {
    /// Describes the weights of a run with this recipe, without a calibrator; `shrink` is the side to which images were
    /// shrunk, if any.
    pub fn new(recipe: &Recipe, classes: &[String], shrink: Option<u32>, weights: &[u8]) -> Self {
        let has_images = !recipe.has_vectors();
        Self {
            format: FORMAT,
            blake3: Self::hash(weights),
            model: (has_images && !recipe.has_encoder()).then(|| ModelSpec::from(recipe)),
            classes: classes.to_vec(),
            resize: if has_images { recipe.augment.resolve().evaluation.resize } else { 0 },
            filter: if has_images { recipe.augment.filter.to_string() } else { String::new() },
            shrink,
            head: None,
            calibration: None,
            held_out: None,
            calibration_blake3: String::new(),
            reference: String::new(),
            label_draws: LabelDraws::default(),
        }
    }

    /// Returns the image format of the network or encoder; `None` if the model reads vectors.
    pub fn pixels(&self) -> Option<PixelFormat> {
        if let Some(ModelSpec { size, mean, std, .. }) = self.model {
            return Some(PixelFormat { size, mean, std });
        }
        let encoder = self.head.as_ref()?.encoder.as_ref()?;
        Some(PixelFormat { size: encoder.size, mean: encoder.mean, std: encoder.std })
    }

    /// Returns the name of the network, or of the encoder under the head; `None` if the model reads vectors.
    pub fn network_name(&self) -> Option<String> {
        let encoder = || Some(format!("ONNX encoder ({})", self.head.as_ref()?.encoder.as_ref()?.output));
        self.model.map(|model| model.network.to_string()).or_else(encoder)
    }

    /// Returns whether the model reads vectors instead of images, as a head without a backbone.
    pub fn reads_vectors(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.backbone.is_empty())
    }

    /// Updates the hash of the calibration. Call it after changing the calibration or the held-out labels and before
    /// writing.
    pub fn seal(&mut self) -> Result<(), serde_json::Error> {
        self.calibration_blake3 = self.hash_of_calibration()?;
        Ok(())
    }

    /// Returns whether the calibration and the held-out labels are as written.
    pub fn is_sealed(&self) -> bool {
        self.hash_of_calibration().is_ok_and(|hash| hash == self.calibration_blake3)
    }

    fn hash_of_calibration(&self) -> Result<String, serde_json::Error> {
        Ok(Self::hash(&serde_json::to_vec(&(&self.calibration, &self.held_out))?))
    }

    /// Returns the weights with this description in their metadata, after updating the hashes of the weights and the
    /// calibration.
    pub fn embed(&mut self, weights: &[u8]) -> Result<Vec<u8>, RunError> {
        self.seal().map_err(SafeTensorError::from)?;
        self.blake3.clear();
        let text = serde_json::to_string(self).map_err(SafeTensorError::from)?;
        let file = SafeTensors::deserialize(weights)?;
        let weights = safetensors::serialize(file.tensors(), Some([(KEY.to_owned(), text)].into()))?;
        self.blake3 = Self::hash(&weights);
        Ok(weights)
    }

    /// Reads the description in the metadata of a file of weights; `None` if calmix did not write one.
    pub fn embedded(weights: &[u8]) -> Result<Option<Self>, RunError> {
        let (_, header) = SafeTensors::read_metadata(weights)?;
        let text = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
        let mut info: Option<Self> =
            text.map(|text| serde_json::from_str(text)).transpose().map_err(SafeTensorError::from)?;
        if let Some(info) = &mut info {
            info.blake3 = Self::hash(weights);
        }
        Ok(info)
    }

    /// Returns the hash of a file of weights.
    pub fn hash(weights: &[u8]) -> String {
        blake3::hash(weights).to_hex().to_string()
    }

    /// Describes the first difference between this file and `found` (the weights, the run's recipe, its dataset); `None` if
    /// all is equal. The calibrator and the held-out labels are not compared, since they can be fitted again later.
    pub fn difference(&self, found: &Self) -> Option<String> {
        if self.format != found.format {
            let format = self.format;
            return Some(format!("the format is {format} here, but {} in the run", found.format));
        }
        let short = |hash: &str| hash.chars().take(12).collect::<String>();
        if self.blake3 != found.blake3 {
            let stored = short(&self.blake3);
            let actual = short(&found.blake3);
            return Some(format!(
                "the hash of the weights is {stored} here, but that of model.safetensors is {actual}"
            ));
        }
        let mut facts = self.facts().into_iter().zip(found.facts());
        if let Some(((what, stored), (_, actual))) = facts.find(|(stored, actual)| stored != actual) {
            return Some(format!("{what} is {stored} here, but {actual} in the run"));
        }
        let is_same = match (&self.head, &found.head) {
            (Some(head), Some(found)) => head.is_same(found),
            (head, found) => head == found,
        };
        (!is_same).then(|| "the head or its backbone differs from that of the run".to_owned())
    }

    /// Lists the properties that two descriptions of the same model share, each with its name. Different networks differ in
    /// the first entry.
    fn facts(&self) -> Vec<(String, String)> {
        let mut facts = Vec::new();
        let mut add = |what: &str, value: String| facts.push((what.to_owned(), value));
        add("the network", self.model.map_or("none".to_owned(), |model| model.network.to_string()));
        if let Some(model) = &self.model {
            add("the first block", model.block.to_string());
            add("the stride", model.stride.to_string());
        }
        add("the number of classes", self.classes.len().to_string());
        for (n, class) in self.classes.iter().enumerate() {
            add(&format!("class {n}"), format!("{class:?}"));
        }
        if let Some(model) = &self.model {
            let epsilon =
                model.norm_eps.map_or("the network's own".to_owned(), |epsilon| epsilon.to_string());
            add("the epsilon of normalisation", epsilon);
            add("the size of images", model.size.to_string());
        }
        add("the size before cropping", self.resize.to_string());
        add("the filter", self.filter.clone());
        add("the side of shrunk images", self.shrink.map_or("none".to_owned(), |side| side.to_string()));
        if let Some(model) = &self.model {
            add("the mean of pixels", format!("{:?}", model.mean));
            add("the standard deviation of pixels", format!("{:?}", model.std));
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use calmix_io::error::FileProblem;
    use calmix_recipe::network::{BottleneckStride, FirstBlock};

    use super::*;
    use crate::read;

    fn spec() -> ModelSpec {
        ModelSpec { mean: [0.5; 3], std: [0.25; 3], ..ModelSpec::new("wrn-10-1".parse().unwrap(), 32) }
    }

    fn info() -> ModelInfo {
        ModelInfo {
            format: FORMAT,
            blake3: ModelInfo::hash(b"weights"),
            model: Some(spec()),
            classes: vec!["cat".into(), "dog".into()],
            resize: 32,
            filter: "bilinear".into(),
            shrink: None,
            head: None,
            calibration: None,
            held_out: None,
            calibration_blake3: String::new(),
            reference: String::new(),
            label_draws: LabelDraws::default(),
        }
    }

    #[test]
    fn changed_calibration_is_noticed() {
        let mut info = info();
        assert!(!info.is_sealed());
        info.held_out = Some(HeldOut {
            label: vec![1],
            answer: vec![0.1],
            right: vec![true],
            lac: vec![0.1 + 0.2],
            aps: vec![1.0 / 3.0],
            ..HeldOut::default()
        });
        info.seal().unwrap();
        let json = serde_json::to_string_pretty(&info).unwrap();
        let read: ModelInfo = serde_json::from_str(&json).unwrap();
        assert!(read.is_sealed() && read == info);
        let changed = ModelInfo { held_out: None, ..info.clone() };
        assert!(!changed.is_sealed());

        let temp = tempfile::tempdir().unwrap();
        assert!(read::model_info(temp.path()).unwrap_err().to_string().contains("this file is missing"));
        fs::write(temp.path().join("model.json"), json).unwrap();
        assert_eq!(read::model_info(temp.path()).unwrap(), info);
        fs::write(temp.path().join("model.json"), serde_json::to_vec(&changed).unwrap()).unwrap();
        let error = read::model_info(temp.path()).unwrap_err();
        assert!(matches!(error.problem, FileProblem::Changed(_)), "{error}");
    }

    #[test]
    fn weights_metadata_round_trips() {
        let tensors = vec![crate::tensor_files::tensors::tensor("fc.bias", &[2], &[0.5_f32, -1.0])];
        let bare = crate::tensor_files::tensors::write(tensors, None).unwrap();
        assert_eq!(ModelInfo::embedded(&bare).unwrap(), None);
        let mut info = info();
        let weights = info.embed(&bare).unwrap();
        assert_eq!(info.blake3, ModelInfo::hash(&weights));
        assert_eq!(ModelInfo::embedded(&weights).unwrap(), Some(info.clone()));
        // Embedding again gives the same file.
        assert_eq!(info.embed(&weights).unwrap(), weights);
        assert!(ModelInfo::embedded(b"nothing").is_err() && info.embed(b"nothing").is_err());
    }

    #[test]
    fn every_field_is_compared_and_new_ones_ignored() {
        let info = info();
        assert_eq!(info.difference(&info), None);
        let of = |model: ModelSpec| ModelInfo { model: Some(model), ..info.clone() };
        let others = vec![
            (ModelInfo { blake3: ModelInfo::hash(b"others"), ..info.clone() }, "the hash of the weights"),
            (
                of(ModelSpec { network: "wrn-16-2".parse().unwrap(), ..spec() }),
                "the network is wrn-10-1 here, but wrn-16-2",
            ),
            (of(ModelSpec { block: FirstBlock::Torch, ..spec() }), "the first block is google here"),
            (of(ModelSpec { stride: BottleneckStride::First, ..spec() }), "the stride is 3x3 here, but 1x1"),
            (
                ModelInfo { classes: vec!["cat".into()], ..info.clone() },
                "the number of classes is 2 here, but 1",
            ),
            (
                ModelInfo { classes: vec!["cat".into(), "cow".into()], ..info.clone() },
                "class 1 is \"dog\" here",
            ),
            (ModelInfo { format: 1, ..info.clone() }, "the format is 5 here, but 1 in the run"),
            (
                of(ModelSpec { norm_eps: Some(0.5), ..spec() }),
                "the epsilon of normalisation is the network's own here, but 0.5",
            ),
            (of(ModelSpec { size: 96, ..spec() }), "the size of images is 32 here, but 96"),
            (
                ModelInfo { shrink: Some(512), ..info.clone() },
                "the side of shrunk images is none here, but 512",
            ),
            (ModelInfo { resize: 36, ..info.clone() }, "the size before cropping is 32 here, but 36"),
            (
                ModelInfo { filter: "bicubic".into(), ..info.clone() },
                "the filter is bilinear here, but bicubic",
            ),
            (of(ModelSpec { mean: [0.5, 0.5, 0.4], ..spec() }), "the mean of pixels is [0.5, 0.5, 0.5] here"),
            (of(ModelSpec { std: [0.5; 3], ..spec() }), "the standard deviation of pixels"),
            (
                ModelInfo {
                    head: Some(HeadInfo {
                        sets: Vec::new(),
                        kind: HeadKind::Linear,
                        precision: Precision::Bf16,
                        runtime: String::new(),
                        features: 1_280,
                        dimensions: 256,
                        neighbours: 0,
                        backbone: String::new(),
                        encoder: None,
                        projection: String::new(),
                    }),
                    ..info.clone()
                },
                "the head or its backbone differs",
            ),
        ];
        for (found, sentence) in others {
            let difference = info.difference(&found).unwrap();
            assert!(difference.starts_with(sentence), "{difference}");
        }
        let mut json = serde_json::to_value(&info).unwrap();
        assert_eq!(json["network"], "wrn-10-1", "the fields of the network are among the others");
        json["of a later version"] = true.into();
        json.as_object_mut().unwrap().remove("stride");
        assert_eq!(serde_json::from_value::<ModelInfo>(json).unwrap(), info);
    }
}
