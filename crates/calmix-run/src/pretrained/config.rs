//! The configuration of pretrained weights, in `config.json` beside them in the format of timm's hub files, or in their own
//! metadata.

use safetensors::SafeTensors;
use serde_json::{Map, Value};

use crate::error::RunError;
use crate::model_info::ModelInfo;

/// The name of the configuration file beside the weights.
pub const CONFIG: &str = "config.json";

/// The maximum size of a `config.json` to read, in bytes: those of hubs may list thousands of classes.
pub const MAX_CONFIG_BYTES: u64 = 4 << 20;

/// The metadata key for the text of a `config.json`.
const KEY: &str = "config";

/// The maximum side of images, in pixels.
pub(crate) const MAX_SIDE: u64 = 16_384;

/// The network of the weights and its image format; `None` for fields that the configuration lacks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PretrainedConfig {
    /// The network under its name in timm.
    pub architecture: Option<String>,
    /// The kind of first block in the later stages of a Wide ResNet.
    pub block: Option<String>,
    /// The convolution of a bottleneck that halves the image.
    pub stride: Option<String>,
    /// The epsilon that BatchNorm adds to a variance.
    pub norm_eps: Option<f64>,
    /// The side of the images, in pixels.
    pub size: Option<u32>,
    /// The mean of red, green and blue, subtracted from pixel values between 0 and 1.
    pub mean: Option<[f64; 3]>,
    /// The standard deviation of red, green and blue, by which pixel values are then divided.
    pub std: Option<[f64; 3]>,
    /// The licence of the weights.
    pub licence: Option<String>,
}

impl PretrainedConfig {
    /// Parses a `config.json`. Keys that calmix does not need are ignored.
    pub fn parse(text: &[u8]) -> Result<Self, RunError> {
        let parsed: Value =
            serde_json::from_slice(text).map_err(|error| RunError::Format(format!("not JSON: {error}")))?;
        let config = object("config.json", &parsed)?;
        let trained = pretrained_section(config)?;
        let mut stride = None;
        if let Some(arguments) = config.get("model_args").filter(|value| !value.is_null()) {
            let arguments = object("model_args", arguments)?;
            stride = string("stride", arguments)?;
            if let Some(other) = arguments.keys().find(|key| *key != "stride") {
                let other = shortened(other);
                return Err(RunError::Format(format!(
                    "`model_args` has `{other}`, which calmix does not know: the network may differ"
                )));
            }
        }
        // The tag after the name, such as `.in1k`, is the training data.
        let architecture = string("architecture", config)?;
        let architecture = architecture.map(|name| name.split('.').next().unwrap_or_default().to_owned());
        Ok(Self {
            architecture,
            stride,
            size: size(trained)?,
            mean: channels("mean", trained)?,
            std: channels("std", trained)?,
            licence: string("license", trained)?,
            ..Self::default()
        })
    }

    /// Reads the metadata of a file of weights: a `config.json`, or the description that a run writes into its model. `None`
    /// if there is neither.
    pub fn embedded(weights: &[u8]) -> Result<Option<Self>, RunError> {
        let (_, header) = SafeTensors::read_metadata(weights)?;
        if let Some(text) = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY)) {
            return Self::parse(text.as_bytes()).map(Some);
        }
        // A file of another program may use our key for anything, which is then ignored.
        let Ok(Some(info)) = ModelInfo::embedded(weights) else { return Ok(None) };
        // A head on vectors has no network.
        let Some(model) = info.model else { return Ok(None) };
        let numbers = |numbers: [f64; 3]| Value::from(numbers.to_vec());
        let checked = Map::from_iter([
            ("input_size".to_owned(), Value::from(vec![3, model.size, model.size])),
            ("mean".to_owned(), numbers(model.mean)),
            ("std".to_owned(), numbers(model.std)),
        ]);
        Ok(Some(Self {
            architecture: Some(model.network.to_string()),
            block: Some(model.block.to_string()),
            stride: Some(model.stride.to_string()),
            norm_eps: model.norm_eps,
            size: size(&checked)?,
            mean: channels("mean", &checked)?,
            std: channels("std", &checked)?,
            licence: None,
        }))
    }
}

/// Shortens a value for messages.
fn shortened(text: &str) -> String {
    if text.chars().count() <= 60 { text.to_owned() } else { text.chars().take(60).chain(['…']).collect() }
}

pub(crate) fn refused(key: &'static str, value: &Value, expected: &'static str) -> RunError {
    let value = shortened(&value.to_string());
    RunError::Format(format!("`{key}` is {value}, but must be {expected}"))
}

pub(crate) fn object<'a>(key: &'static str, value: &'a Value) -> Result<&'a Map<String, Value>, RunError> {
    value.as_object().ok_or_else(|| refused(key, value, "an object"))
}

/// Returns the section about images. In older files of timm, it is the top level.
pub(crate) fn pretrained_section(config: &Map<String, Value>) -> Result<&Map<String, Value>, RunError> {
    match config.get("pretrained_cfg") {
        None | Some(Value::Null) => Ok(config),
        Some(inner) => object("pretrained_cfg", inner),
    }
}

pub(crate) fn string(key: &'static str, from: &Map<String, Value>) -> Result<Option<String>, RunError> {
    match from.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() <= 256 => Ok(Some(text.clone())),
        Some(other) => Err(refused(key, other, "a text of at most 256 bytes")),
    }
}

pub(crate) fn size(from: &Map<String, Value>) -> Result<Option<u32>, RunError> {
    let Some(value) = from.get("input_size").filter(|value| !value.is_null()) else { return Ok(None) };
    let sides: Option<Vec<u64>> =
        value.as_array().and_then(|sides| sides.iter().map(Value::as_u64).collect());
    match sides.as_deref() {
        Some(&[3, height, width]) if height == width && (1..=MAX_SIDE).contains(&height) => {
            Ok(u32::try_from(height).ok())
        }
        _ => Err(refused("input_size", value, "[3, SIDE, SIDE] with a side of 1 to 16384 pixels")),
    }
}

pub(crate) fn channels(key: &'static str, from: &Map<String, Value>) -> Result<Option<[f64; 3]>, RunError> {
    let Some(value) = from.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
    let numbers: Option<Vec<f64>> =
        value.as_array().and_then(|numbers| numbers.iter().map(Value::as_f64).collect());
    let numbers: Option<[f64; 3]> = numbers.and_then(|numbers| numbers.try_into().ok());
    // If the inverse of a deviation is not finite in f32, every image would become NaN.
    let (min, expected) = match key {
        "std" | "image_std" => (1e-6, "three numbers from 0.000001 to 1, for red, green and blue"),
        _ => (0.0, "three numbers from 0 to 1, for red, green and blue"),
    };
    let is_valid = |numbers: &[f64; 3]| numbers.iter().all(|number| (min..=1.0).contains(number));
    numbers.filter(is_valid).map(Some).ok_or_else(|| refused(key, value, expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMM: &str = r#"{"architecture": "tf_efficientnet_lite0.in1k", "num_classes": 1000, "pretrained_cfg": {
        "input_size": [3, 224, 224], "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.25, 0.5], "license": "apache-2.0"}}"#;

    fn parse(text: &str) -> Result<PretrainedConfig, String> {
        PretrainedConfig::parse(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_of_timms_hub_is_read() {
        let config = parse(TIMM).unwrap();
        assert_eq!(config.architecture.as_deref(), Some("tf_efficientnet_lite0"));
        assert_eq!((config.size, config.std), (Some(224), Some([0.5, 0.25, 0.5])));
        assert_eq!((config.licence.as_deref(), config.stride), (Some("apache-2.0"), None));
        // In the format of older files, with ignored values.
        let older = r#"{"architecture": "resnet50", "input_size": [3, 96, 96], "mean": null}"#;
        let older = parse(older).unwrap();
        assert_eq!((older.size, older.mean), (Some(96), None));
        assert_eq!(parse(r#"{"model_args": {"stride": "1x1"}}"#).unwrap().stride.as_deref(), Some("1x1"));
        assert_eq!(parse("{}").unwrap(), PretrainedConfig::default());
    }

    #[test]
    fn invalid_values_are_refused_with_their_key() {
        let hostile = [
            ("[]", "`config.json` is [], but must be an object"),
            ("{", "not JSON"),
            (r#"{"architecture": 7}"#, "`architecture` is 7"),
            (r#"{"pretrained_cfg": 1}"#, "`pretrained_cfg` is 1, but must be an object"),
            (r#"{"input_size": [3, 224, 192]}"#, "`input_size` is [3,224,192], but must be [3, SIDE, SIDE]"),
            (r#"{"input_size": [1, 28, 28]}"#, "`input_size`"),
            (r#"{"input_size": [3, 1e9, 1e9]}"#, "`input_size`"),
            (r#"{"input_size": [3, 99999, 99999]}"#, "`input_size`"),
            (r#"{"input_size": [3, 0, 0]}"#, "`input_size`"),
            (r#"{"input_size": "large"}"#, "`input_size` is \"large\""),
            (r#"{"mean": [0.5, 0.5]}"#, "`mean` is [0.5,0.5], but must be three numbers"),
            (r#"{"mean": [NaN, 0, 0]}"#, "not JSON"),
            (r#"{"mean": [1e999, 0, 0]}"#, "not JSON"),
            (r#"{"mean": [123.7, 116.8, 103.9]}"#, "`mean`"),
            (r#"{"std": [0.5, 0, 0.5]}"#, "`std` is [0.5,0,0.5]"),
            (r#"{"std": [0.5, -0.5, 0.5]}"#, "`std`"),
            (r#"{"std": [1e-300, 0.5, 0.5]}"#, "`std`"),
            (r#"{"std": ["a", 0.5, 0.5]}"#, "`std`"),
            (r#"{"model_args": {"width": 2}}"#, "`model_args` has `width`, which calmix does not know"),
        ];
        for (text, sentence) in hostile {
            let error = parse(text).unwrap_err();
            assert!(error.contains(sentence), "{text}: {error}");
        }
        let long = format!(r#"{{"architecture": "{}"}}"#, "x".repeat(9999));
        assert!(parse(&long).unwrap_err().len() < 200);
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(parse(&deep).unwrap_err().starts_with("not JSON"));
    }

    #[test]
    fn metadata_matches_the_file_beside_it() {
        let tensors = || vec![crate::tensor_files::tensors::tensor("fc.bias", &[2], &[0.5_f32, -1.0])];
        let with = |key: &'static str, text: &str| {
            crate::tensor_files::tensors::write(tensors(), Some((key, text.to_owned()))).unwrap()
        };
        let embedded = |file: &[u8]| PretrainedConfig::embedded(file).map_err(|error| error.to_string());
        assert_eq!(embedded(&with(KEY, TIMM)), Ok(Some(parse(TIMM).unwrap())));
        assert!(embedded(&with(KEY, r#"{"std": [0, 0, 0]}"#)).unwrap_err().contains("`std`"));
        assert_eq!(embedded(&with("format", "pt")), Ok(None));
        assert_eq!(embedded(&with("calmix", "something else")), Ok(None));
        assert!(embedded(b"nothing").unwrap_err().starts_with("not a safetensors file"));
        let model = r#"{"format": 2, "blake3": "", "network": "wrn-10-1", "block": "torch", "classes": ["a", "b"],
            "size": 8, "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "norm_eps": 0.5}"#;
        let run = embedded(&with("calmix", model)).unwrap().unwrap();
        assert_eq!((run.architecture.as_deref(), run.block.as_deref()), (Some("wrn-10-1"), Some("torch")));
        assert_eq!((run.size, run.norm_eps, run.std), (Some(8), Some(0.5), Some([0.25; 3])));
        let flat = model.replace("[0.25, 0.25, 0.25]", "[0, 0, 0]");
        assert!(embedded(&with("calmix", &flat)).unwrap_err().contains("`std`"));
    }
}
