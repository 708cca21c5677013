//! The configuration of an image encoder's preprocessing, in `preprocessor_config.json` as transformers writes it, or in
//! timm's `config.json`.

use serde_json::{Map, Value};

use crate::error::RunError;
use crate::pretrained::config::{MAX_SIDE, channels, object, pretrained_section, refused, size, string};

/// The configuration file of transformers.
pub const PREPROCESSOR: &str = "preprocessor_config.json";

/// Pillow's numbers for filters, which transformers stores.
const BILINEAR: u64 = 2;
const BICUBIC: u64 = 3;

/// The preprocessing of an encoder's images; `None` for fields that the configuration lacks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EncoderConfig {
    /// The side of the images, in pixels.
    pub size: Option<u32>,
    /// The shorter side before the centre crop, in pixels.
    pub resize: Option<u32>,
    /// The resizing filter: `bilinear` or `bicubic`.
    pub filter: Option<String>,
    /// The mean of red, green and blue, subtracted from pixel values between 0 and 1.
    pub mean: Option<[f64; 3]>,
    /// The standard deviation of red, green and blue, by which pixel values are then divided.
    pub std: Option<[f64; 3]>,
}

impl EncoderConfig {
    /// Parses a `preprocessor_config.json`. Keys that calmix does not need are ignored.
    pub fn of_preprocessor(text: &[u8]) -> Result<Self, RunError> {
        let config = parsed(text)?;
        let config = object(PREPROCESSOR, &config)?;
        let is_off = |key: &str| config.get(key) == Some(&Value::Bool(false));
        if let Some(factor) = config.get("rescale_factor").filter(|_| !is_off("do_rescale")) {
            let is_usual = factor.as_f64().is_some_and(|factor| (factor * 255.0 - 1.0).abs() < 1e-3);
            if !is_usual {
                return Err(refused("rescale_factor", factor, "1/255"));
            }
        }
        let scaled = side("size", config.get("size"))?;
        let cropped =
            if is_off("do_center_crop") { None } else { side("crop_size", config.get("crop_size"))? };
        let is_cropped = cropped.is_some() && !is_off("do_center_crop");
        let (mut size, mut resize) = if is_cropped { (cropped, scaled) } else { (scaled, None) };
        // ConvNeXt stores the side of its crop, and the ratio of the crop to the shorter side.
        if let Some(share) = config.get("crop_pct").and_then(Value::as_f64)
            && (0.1..=1.0).contains(&share)
            && let Some(side) = scaled
        {
            size = Some(side);
            resize = Some((f64::from(side) / share).floor() as u32);
        }
        let filter = match config.get("resample").and_then(Value::as_u64) {
            Some(BILINEAR) => Some("bilinear".to_owned()),
            Some(BICUBIC) => Some("bicubic".to_owned()),
            _ => None,
        };
        let (mean, std) = if is_off("do_normalize") {
            (Some([0.0; 3]), Some([1.0; 3]))
        } else {
            (channels("image_mean", config)?, channels("image_std", config)?)
        };
        Ok(Self { size, resize, filter, mean, std })
    }

    /// Parses timm's `config.json`.
    pub fn of_timm(text: &[u8]) -> Result<Self, RunError> {
        let config = parsed(text)?;
        let config = object("config.json", &config)?;
        let trained = pretrained_section(config)?;
        let size = size(trained)?;
        let share =
            trained.get("crop_pct").and_then(Value::as_f64).filter(|share| (0.1..=1.0).contains(share));
        let resize = size.zip(share).map(|(size, share)| (f64::from(size) / share).floor() as u32);
        let known = |filter: &String| matches!(filter.as_str(), "bilinear" | "bicubic");
        let filter = string("interpolation", trained)?.filter(known);
        Ok(Self { size, resize, filter, mean: channels("mean", trained)?, std: channels("std", trained)? })
    }
}

fn parsed(text: &[u8]) -> Result<Value, RunError> {
    serde_json::from_slice(text).map_err(|error| RunError::Format(format!("not JSON: {error}")))
}

/// Parses a side: `224`, `{"height": 224, "width": 224}` or `{"shortest_edge": 256}`.
fn side(key: &'static str, value: Option<&Value>) -> Result<Option<u32>, RunError> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let of = |object: &Map<String, Value>| {
        let edge = |name: &str| object.get(name).and_then(Value::as_u64);
        match (edge("height"), edge("width")) {
            (Some(height), Some(width)) if height == width => Some(height),
            (None, None) => edge("shortest_edge"),
            _ => None,
        }
    };
    let found = value.as_u64().or_else(|| of(value.as_object()?));
    let found = found.filter(|side| (1..=MAX_SIDE).contains(side)).and_then(|side| u32::try_from(side).ok());
    found
        .map(Some)
        .ok_or_else(|| refused(key, value, "a side of 1 to 16384 pixels, the same for height and width"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preprocessors_of_the_hub_are_read() {
        let dinov2 =
            br#"{"crop_size": {"height": 224, "width": 224}, "do_center_crop": true, "do_normalize": true,
            "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "resample": 3,
            "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 256}}"#;
        let config = EncoderConfig::of_preprocessor(dinov2).unwrap();
        assert_eq!((config.size, config.resize), (Some(224), Some(256)));
        assert_eq!(config.filter.as_deref(), Some("bicubic"));
        assert_eq!(config.mean, Some([0.485, 0.456, 0.406]));
        let siglip = br#"{"do_resize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "resample": 2,
            "size": {"height": 256, "width": 256}}"#;
        let config = EncoderConfig::of_preprocessor(siglip).unwrap();
        assert_eq!((config.size, config.resize), (Some(256), None));
        let convnext =
            br#"{"crop_pct": 0.875, "image_mean": [0.485, 0.456, 0.406], "size": {"shortest_edge": 224}}"#;
        let config = EncoderConfig::of_preprocessor(convnext).unwrap();
        assert_eq!((config.size, config.resize), (Some(224), Some(256)));
        let raw = br#"{"do_normalize": false, "size": 96}"#;
        let config = EncoderConfig::of_preprocessor(raw).unwrap();
        assert_eq!((config.size, config.mean, config.std), (Some(96), Some([0.0; 3]), Some([1.0; 3])));
    }

    #[test]
    fn configuration_of_timm_is_read() {
        let text = br#"{"architecture": "vit_small_patch16_224", "model_args": {"img_size": 224}, "pretrained_cfg":
            {"input_size": [3, 224, 224], "interpolation": "bicubic", "crop_pct": 0.9, "mean": [0.5, 0.5, 0.5],
            "std": [0.5, 0.5, 0.5]}}"#;
        let config = EncoderConfig::of_timm(text).unwrap();
        assert_eq!((config.size, config.resize), (Some(224), Some(248)));
        assert_eq!((config.filter.as_deref(), config.std), (Some("bicubic"), Some([0.5; 3])));
    }

    #[test]
    fn values_that_cannot_be_followed_are_refused() {
        for (text, sentence) in [
            (r#"{"size": {"height": 224, "width": 192}}"#, "`size`"),
            (r#"{"size": {"longest_edge": 1024}}"#, "`size`"),
            (r#"{"size": 0}"#, "`size`"),
            (r#"{"crop_size": 99999999}"#, "`crop_size`"),
            (r#"{"rescale_factor": 0.0078}"#, "`rescale_factor` is 0.0078, but must be 1/255"),
            (r#"{"image_mean": [123.7, 116.8, 103.9]}"#, "`image_mean`"),
            (r#"{"image_std": [0.5, 0, 0.5]}"#, "`image_std`"),
            ("[]", "must be an object"),
            ("{", "not JSON"),
        ] {
            let error = EncoderConfig::of_preprocessor(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(sentence), "{text}: {error}");
        }
    }
}
