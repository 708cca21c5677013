//! Draws SVG: a few shapes in a frame with axes, light and dark, for pages, files and images.
//!
//! Colours are classes, never attributes: the stylesheet defines each for light and for dark. CSS variables are not used,
//! because resvg does not support them.
//!
//! Written by hand: a drawing has to be deterministic, available in light and dark, labelled for screen readers and free of
//! scripts, and no chart crate offers all of these.

mod axis;
mod drawing;
mod plot;
#[cfg(feature = "raster")]
mod raster;

pub use axis::Axis;
pub use drawing::{Drawing, STYLE, shortened};
pub use plot::{Key, Plot, PlotMark};

#[cfg(feature = "raster")]
pub use raster::png;

/// The number of colours for lines and areas.
pub const TONES: usize = 6;
