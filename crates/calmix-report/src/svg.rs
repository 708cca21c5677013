//! Drawings as SVG: a few shapes in a frame with axes, light and dark, for pages, files and images.
//!
//! Colours are classes, never attributes: the stylesheet has them twice, for light and for dark. There are no CSS
//! variables, which resvg does not know.
//!
//! By hand: a drawing has to be the same bytes every time, light and dark, labelled for screen readers and free of script,
//! which no crate for charts offers at once.

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

/// The number of colours of lines and areas.
pub const TONES: usize = 6;
