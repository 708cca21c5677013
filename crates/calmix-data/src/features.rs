//! Features of a frozen backbone, computed once and cached.
//!
//! The weights of the backbone are fixed, so its output for a view of an image never changes. A few views of every image
//! pass through the backbone once ([`ViewPixels`] loads them), and the vectors go into a [`FeatureCache`] that runs share.
//!
//! A vector consists of little-endian f16 values: [`to_f16`] converts from f32, and [`from_f16`] converts back.

mod cache;
mod carry_over;
mod page;
mod page_map;
mod pixels;

use half::f16;
use half::slice::HalfFloatSliceExt;
use serde::{Deserialize, Serialize};

pub use cache::{FeatureCache, MissingPage, by_page};
pub use pixels::ViewPixels;

/// Converts cached vectors to f32.
pub fn from_f16(vectors: &[u8]) -> Vec<f32> {
    let halves: Vec<f16> = vectors.as_chunks().0.iter().map(|&number| f16::from_le_bytes(number)).collect();
    let mut numbers = vec![0.0; halves.len()];
    halves.convert_to_f32_slice(&mut numbers);
    numbers
}

/// Converts values to vectors of the cache, rounding to the nearest f16.
pub fn to_f16(numbers: &[f32]) -> Vec<u8> {
    let mut halves = vec![f16::ZERO; numbers.len()];
    halves.convert_from_f32_slice(numbers);
    halves.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A view of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeatureView {
    /// The evaluation view, without randomness.
    Clean,
    /// The weak view with this number.
    Weak(u8),
    /// The strong view with this number.
    Strong(u8),
}

impl FeatureView {
    /// Lists one clean view, then the given numbers of weak and strong views.
    pub fn list(weak: u8, strong: u8) -> Vec<Self> {
        let weak = (0..weak).map(Self::Weak);
        [Self::Clean].into_iter().chain(weak).chain((0..strong).map(Self::Strong)).collect()
    }

    fn to_bytes(self) -> [u8; 2] {
        match self {
            Self::Clean => [0, 0],
            Self::Weak(n) => [1, n],
            Self::Strong(n) => [2, n],
        }
    }

    fn from_bytes(bytes: [u8; 2]) -> Option<Self> {
        match bytes {
            [0, 0] => Some(Self::Clean),
            [1, n] => Some(Self::Weak(n)),
            [2, n] => Some(Self::Strong(n)),
            _ => None,
        }
    }
}

/// Everything that the vectors of a cache depend on besides the sample and the view. Each identity has its own cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureIdentity {
    /// The format of the cache.
    pub format: u32,
    /// The fingerprint of the dataset.
    pub dataset: String,
    /// The settings of the views, as JSON.
    pub views: String,
    /// The backbone and its weights, as JSON.
    pub backbone: String,
    /// The runtime of the backbone with its version, which affects the last bits. Empty in caches of earlier versions, which
    /// used libtorch.
    #[serde(default)]
    pub runtime: String,
    /// The length of a vector, in numbers.
    pub width: u32,
}

/// The cache format that this version writes.
pub const FORMAT: u32 = 2;

impl FeatureIdentity {
    /// Returns the name of the cache's folder.
    pub fn folder_name(&self) -> String {
        // The fields have a fixed order, and serialising them cannot fail.
        let text = serde_json::to_string(self).unwrap_or_default();
        blake3::hash(text.as_bytes()).to_hex().chars().take(16).collect()
    }

    /// Returns whether another cache differs only in the runtime of the backbone.
    fn is_of_other_runtime(&self, other: &Self) -> bool {
        let is_same = self.dataset == other.dataset && self.views == other.views && self.width == other.width;
        is_same && self.runtime != other.runtime && weights(&self.backbone) == weights(&other.backbone)
    }
}

/// Parses a backbone without its precision, which earlier versions stored there.
fn weights(backbone: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    let mut backbone: serde_json::Map<String, serde_json::Value> = serde_json::from_str(backbone).ok()?;
    backbone.remove("precision");
    Some(backbone)
}
