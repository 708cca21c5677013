//! The geometry of a training view: how its frame is drawn at random.

use calmix_core::rng::Stream;
use calmix_core::settings::choice;
use serde::{Deserialize, Serialize};

use super::frame::{Frame, Rect};
use crate::error::DataError;

/// The largest size of a view: the fixed-point arithmetic of the operations supports twice this.
pub(super) const MAX_SIZE: u32 = 1 << 14;

/// The random geometry of a view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Geometry {
    /// Resizes the shorter side to the size of the view, pads the image by reflection and cuts out a random window. On small
    /// images this is a shift by up to `pad` pixels.
    Shift {
        /// Pixels of padding on each side.
        pad: u32,
        /// Whether half of the views are mirrored.
        flip: bool,
        /// Whether to crop or to mirror first.
        first: First,
    },
    /// Squeezes the whole image to a square of `resize` pixels and cuts out a random window.
    Crop {
        /// Pixels per side before the crop; not less than the size of the view.
        resize: u32,
        /// Whether half of the views are mirrored.
        flip: bool,
    },
    /// Resizes a rectangle of random area and aspect ratio to the view (Szegedy et al., 2015).
    ResizedCrop {
        /// Least and greatest share of the image's area.
        area: [f64; 2],
        /// Least and greatest ratio of width to height.
        ratio: [f64; 2],
        /// Whether half of the views are mirrored.
        flip: bool,
    },
}

choice! {
    /// What comes first in a weak view. Both give the same distribution of views, not the same view for a draw.
    First {
        /// USB.
        Crop = "crop",
        /// Google's FixMatch and TorchSSL.
        Flip = "flip",
    }
}

/// The number of random rectangles to try before using the largest one in the middle.
const ATTEMPTS: usize = 10;

impl Geometry {
    /// Draws the frame of a square view of `size` pixels for an image of this width and height.
    ///
    /// The order of the draws (rectangle or (top, left), then the mirror) is part of the format.
    pub fn draw(&self, size: u32, [width, height]: [u32; 2], stream: &mut Stream) -> Frame {
        let whole = Rect::whole(width, height);
        match *self {
            Self::Shift { pad, flip, first } => {
                let resized = shorter_side_to(size, [width, height]);
                let [mut left, top] = window(size, resized, pad, stream);
                let mirrored = flip && coin(stream);
                if mirrored && first == First::Flip {
                    left = i64::from(resized[0]) - i64::from(size) - left;
                }
                Frame { from: whole, resized, left, top, mirrored }
            }
            Self::Crop { resize, flip } => {
                let resized = [resize.max(size); 2];
                let [left, top] = window(size, resized, 0, stream);
                Frame { from: whole, resized, left, top, mirrored: flip && coin(stream) }
            }
            Self::ResizedCrop { area, ratio, flip } => {
                let from = rectangle([width, height], area, ratio, stream);
                Frame { from, resized: [size; 2], left: 0, top: 0, mirrored: flip && coin(stream) }
            }
        }
    }
}

impl Geometry {
    pub(super) fn check(&self, key: &str, size: u32) -> Result<(), DataError> {
        let rising = |[low, high]: [f64; 2], limit: f64| 0.0 < low && low <= high && high <= limit;
        let problem = match *self {
            Self::Shift { pad, .. } if pad > MAX_SIZE => {
                format!("shift.pad is {pad}; it must be at most {MAX_SIZE}")
            }
            Self::Crop { resize, .. } if resize < size || resize > MAX_SIZE => {
                format!("crop.resize is {resize}; it must be from {size} to {MAX_SIZE}")
            }
            Self::ResizedCrop { area, .. } if !rising(area, 1.0) => {
                format!("resized-crop.area is {area:?}; it must be two rising numbers above 0 and up to 1")
            }
            Self::ResizedCrop { ratio, .. } if !rising(ratio, f64::MAX) => {
                format!("resized-crop.ratio is {ratio:?}; it must be two rising numbers above 0")
            }
            _ => return Ok(()),
        };
        Err(DataError::ViewSetting(format!("{key}.{problem}")))
    }
}

/// Returns the frame for evaluation: the shorter side resized to `resize`, then a centre crop.
pub(super) fn middle(size: u32, resize: u32, [width, height]: [u32; 2]) -> Frame {
    let resized = shorter_side_to(resize, [width, height]);
    // torchvision's centre crop rounds halves to even.
    let [left, top] = resized.map(|side| {
        let half = (f64::from(side) - f64::from(size)) / 2.0;
        half.round_ties_even() as i64
    });
    Frame { from: Rect::whole(width, height), resized, left, top, mirrored: false }
}

/// Scales both sides so that the shorter one is `size`; the longer one is truncated, as in torchvision.
fn shorter_side_to(size: u32, [width, height]: [u32; 2]) -> [u32; 2] {
    let (short, long) = (width.min(height), width.max(height));
    let longer = u64::from(size) * u64::from(long) / u64::from(short.max(1));
    let longer = longer.min(u64::from(u32::MAX)) as u32;
    if width <= height { [size, longer] } else { [longer, size] }
}

/// Draws the start (left, top) of a window in an image that is padded by `pad`.
fn window(size: u32, sides: [u32; 2], pad: u32, stream: &mut Stream) -> [i64; 2] {
    let [width, height] = sides.map(|side| {
        let places = u64::from(side) + 2 * u64::from(pad) + 1;
        places.saturating_sub(u64::from(size))
    });
    let top = stream.below(height).cast_signed();
    let left = stream.below(width).cast_signed();
    [left, top].map(|first| first - i64::from(pad))
}

/// Draws a random rectangle as torchvision's `RandomResizedCrop` does.
fn rectangle([width, height]: [u32; 2], area: [f64; 2], ratio: [f64; 2], stream: &mut Stream) -> Rect {
    let pixels = f64::from(width) * f64::from(height);
    let logs = ratio.map(libm::log);
    for _ in 0..ATTEMPTS {
        let area = pixels * between(area, stream);
        let ratio = libm::exp(between(logs, stream));
        // Python rounds halves to even.
        let w = (area * ratio).sqrt().round_ties_even();
        let h = (area / ratio).sqrt().round_ties_even();
        if w >= 1.0 && w <= f64::from(width) && h >= 1.0 && h <= f64::from(height) {
            let (w, h) = (w as u32, h as u32);
            let top = stream.below(u64::from(height - h) + 1) as u32;
            let left = stream.below(u64::from(width - w) + 1) as u32;
            return Rect { left, top, width: w, height: h };
        }
    }
    largest([width, height], ratio)
}

/// Returns the largest rectangle in the middle with an allowed aspect ratio.
fn largest([width, height]: [u32; 2], [least, greatest]: [f64; 2]) -> Rect {
    let (w, h) = (f64::from(width), f64::from(height));
    let whole_from = |side: f64, limit: u32| (side.round_ties_even() as u32).clamp(limit.min(1), limit);
    let (wide, high) = if w / h < least {
        (width, whole_from(w / least, height))
    } else if w / h > greatest {
        (whole_from(h * greatest, width), height)
    } else {
        (width, height)
    };
    Rect { left: (width - wide) / 2, top: (height - high) / 2, width: wide, height: high }
}

fn between([low, high]: [f64; 2], stream: &mut Stream) -> f64 {
    low + (high - low) * stream.uniform()
}

fn coin(stream: &mut Stream) -> bool {
    stream.below(2) == 1
}
