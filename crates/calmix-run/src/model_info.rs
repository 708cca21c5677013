//! What the weights in `model.safetensors` are: `model.json`, beside them.
//!
//! The weights alone do not say which network they are of, what their outputs mean or what images they expect. With
//! this file they can be used without the recipe, and a file that was swapped, cut or damaged is found.

use calmix_core::class_names;
use serde::{Deserialize, Serialize};

/// The format that this version writes. Later ones may add fields, which older ones pass over.
pub const FORMAT: u32 = 1;

/// What a file of weights is, and what it is made for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The format of this file.
    pub format: u32,
    /// The blake3 of `model.safetensors`, in hexadecimal digits.
    pub blake3: String,
    /// The network: `wrn-28-2`.
    pub network: String,
    /// The first block of its later stages: `google`.
    pub block: String,
    /// The names of the classes, in the order of the logits.
    #[serde(deserialize_with = "class_names::deserialize")]
    pub classes: Vec<String>,
    /// Pixels of a side of its images.
    pub size: u32,
    /// The mean of red, green and blue, subtracted from pixels in 0 to 1.
    pub mean: [f64; 3],
    /// The standard deviation of red, green and blue, which pixels are then divided by.
    pub std: [f64; 3],
}

impl ModelInfo {
    /// The hash of the bytes of a file of weights.
    pub fn hash(weights: &[u8]) -> String {
        blake3::hash(weights).to_hex().to_string()
    }

    /// The first thing that differs between this file and what is `found`: the weights, the run's recipe, its dataset.
    /// None if all is the same.
    pub fn difference(&self, found: &Self) -> Option<String> {
        let Self { format: _, blake3, network, block, classes, size, mean, std } = self;
        let short = |hash: &str| hash.chars().take(12).collect::<String>();
        if *blake3 != found.blake3 {
            let (here, there) = (short(blake3), short(&found.blake3));
            return Some(format!(
                "the hash of the weights is {here} here, but that of model.safetensors is {there}"
            ));
        }
        let differs = |what: &str, here: &dyn ToString, there: &dyn ToString| {
            let (here, there) = (here.to_string(), there.to_string());
            (here != there).then(|| format!("the {what} is {here} here, but {there} in the run"))
        };
        let list = |numbers: &[f64; 3]| format!("{numbers:?}");
        differs("network", network, &found.network)
            .or_else(|| differs("first block", block, &found.block))
            .or_else(|| differs("number of classes", &classes.len(), &found.classes.len()))
            .or_else(|| {
                let pair =
                    classes.iter().zip(&found.classes).enumerate().find(|(_, (here, there))| here != there);
                pair.map(|(n, (here, there))| format!("class {n} is {here:?} here, but {there:?} in the run"))
            })
            .or_else(|| differs("size of images", size, &found.size))
            .or_else(|| differs("mean of pixels", &list(mean), &list(&found.mean)))
            .or_else(|| differs("deviation of pixels", &list(std), &list(&found.std)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_compared_and_new_ones_are_passed_over() {
        let info = ModelInfo {
            format: FORMAT,
            blake3: ModelInfo::hash(b"weights"),
            network: "wrn-10-1".into(),
            block: "google".into(),
            classes: vec!["cat".into(), "dog".into()],
            size: 32,
            mean: [0.5; 3],
            std: [0.25; 3],
        };
        assert_eq!(info.difference(&info), None);
        let others = [
            (ModelInfo { blake3: ModelInfo::hash(b"others"), ..info.clone() }, "the hash of the weights"),
            (
                ModelInfo { network: "wrn-16-2".into(), ..info.clone() },
                "the network is wrn-10-1 here, but wrn-16-2",
            ),
            (ModelInfo { block: "usb".into(), ..info.clone() }, "the first block is google here"),
            (
                ModelInfo { classes: vec!["cat".into()], ..info.clone() },
                "the number of classes is 2 here, but 1",
            ),
            (
                ModelInfo { classes: vec!["cat".into(), "cow".into()], ..info.clone() },
                "class 1 is \"dog\" here",
            ),
            (ModelInfo { size: 96, ..info.clone() }, "the size of images is 32 here, but 96"),
            (
                ModelInfo { mean: [0.5, 0.5, 0.4], ..info.clone() },
                "the mean of pixels is [0.5, 0.5, 0.5] here",
            ),
            (ModelInfo { std: [0.5; 3], ..info.clone() }, "the deviation of pixels"),
        ];
        for (found, sentence) in others {
            let difference = info.difference(&found).unwrap();
            assert!(difference.starts_with(sentence), "{difference}");
        }
        let mut json = serde_json::to_value(&info).unwrap();
        json["of a later version"] = true.into();
        assert_eq!(serde_json::from_value::<ModelInfo>(json).unwrap(), info);
    }
}
