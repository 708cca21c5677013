//! The fourteen operations of RandAugment that FixMatch and its successors use.

use serde::{Deserialize, Serialize};

use super::canvas::{Canvas, Scratch};
use super::{affine, enhance, table};

/// An operation on an image; its magnitude is a separate argument.
///
/// Each produces the same bytes as Pillow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Stretch each channel to the full range. No magnitude.
    Autocontrast,
    /// Blend with black; the magnitude is the image's weight.
    Brightness,
    /// Blend with the grey image; the magnitude is the image's weight.
    Colour,
    /// Blend with the mean grey; the magnitude is the image's weight.
    Contrast,
    /// Flatten each channel's histogram. No magnitude.
    Equalise,
    /// Nothing.
    Identity,
    /// Keep this many high bits of each channel, truncated to a whole number from 1 to 8.
    Posterise,
    /// Turn counterclockwise; the magnitude is in degrees.
    Rotate,
    /// Blend with the smoothed image; the magnitude is the image's weight.
    Sharpness,
    /// Move each row left by this factor of its distance from the top.
    ShearX,
    /// Move each column up by this factor of its distance from the left.
    ShearY,
    /// Invert every value at or above this threshold.
    Solarise,
    /// Move left by this fraction of the width.
    TranslateX,
    /// Move up by this fraction of the height.
    TranslateY,
}

impl Op {
    /// All operations, in the order in which they are drawn.
    pub const ALL: [Self; 14] = [
        Self::Autocontrast,
        Self::Brightness,
        Self::Colour,
        Self::Contrast,
        Self::Equalise,
        Self::Identity,
        Self::Posterise,
        Self::Rotate,
        Self::Sharpness,
        Self::ShearX,
        Self::ShearY,
        Self::Solarise,
        Self::TranslateX,
        Self::TranslateY,
    ];

    /// Returns the range from which the magnitude is drawn.
    pub fn range(self) -> [f64; 2] {
        match self {
            Self::Autocontrast | Self::Equalise | Self::Identity => [0.0, 1.0],
            Self::Brightness | Self::Colour | Self::Contrast | Self::Sharpness => [0.05, 0.95],
            Self::Posterise => [4.0, 8.0],
            Self::Rotate => [-30.0, 30.0],
            Self::ShearX | Self::ShearY | Self::TranslateX | Self::TranslateY => [-0.3, 0.3],
            Self::Solarise => [0.0, 256.0],
        }
    }

    /// Applies the operation to the canvas.
    pub fn apply(self, magnitude: f64, canvas: &mut Canvas, scratch: &mut Scratch) {
        match self {
            Self::Autocontrast => table::autocontrast(canvas),
            Self::Brightness => enhance::brightness(canvas, magnitude),
            Self::Colour => enhance::colour(canvas, magnitude, scratch),
            Self::Contrast => enhance::contrast(canvas, magnitude),
            Self::Equalise => table::equalise(canvas),
            Self::Identity => (),
            Self::Posterise => table::posterise(canvas, magnitude as u32),
            Self::Rotate => affine::rotate(canvas, magnitude, scratch),
            Self::Sharpness => enhance::sharpness(canvas, magnitude, scratch),
            Self::ShearX => affine::shear_x(canvas, magnitude, scratch),
            Self::ShearY => affine::shear_y(canvas, magnitude, scratch),
            Self::Solarise => table::solarise(canvas, magnitude),
            Self::TranslateX => affine::translate_x(canvas, magnitude * canvas.width as f64, scratch),
            Self::TranslateY => affine::translate_y(canvas, magnitude * canvas.height as f64, scratch),
        }
    }
}
