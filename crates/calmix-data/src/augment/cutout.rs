//! Cutout: a square of one colour at a random place (DeVries and Taylor, 2017).

use calmix_core::rng::Stream;
use serde::{Deserialize, Serialize};

use super::canvas::Canvas;
use super::resize::Rgb;

/// The kind of square to cut out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Cutout {
    /// No cutout.
    None,
    /// A side drawn uniformly between zero and a share of the width.
    ///
    /// As in USB the square is a Pillow rectangle, which includes its last row and column.
    Random {
        /// The greatest share.
        share: f64,
        /// The colour.
        fill: [u8; 3],
    },
    /// A side with a fixed number of pixels.
    Fixed {
        side: u32,
        /// The colour.
        fill: [u8; 3],
    },
}

/// The columns and rows that a cutout covers, each as start and end (exclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// First column, and one past the last.
    pub columns: [usize; 2],
    /// First row, and one past the last.
    pub rows: [usize; 2],
}

impl Hole {
    /// Covers the pixels of the hole with a colour.
    pub fn fill(&self, canvas: &mut Canvas, colour: [u8; 3]) {
        let [left, right] = self.columns.map(|x| x.min(canvas.width));
        let [top, bottom] = self.rows;
        for row in canvas.rows().take(bottom).skip(top) {
            if let Some(covered) = row.get_mut(left..right) {
                covered.fill(colour);
            }
        }
    }
}

impl Cutout {
    /// Draws a hole on a canvas of this width and height: the side (if it is random), then the centre.
    pub fn draw(&self, [width, height]: [usize; 2], stream: &mut Stream) -> Option<(Hole, Rgb)> {
        let (side, inclusive, fill) = match *self {
            Self::None => return None,
            Self::Random { share, fill } => (stream.uniform() * share * width as f64, true, fill),
            Self::Fixed { side, fill } => (f64::from(side), false, fill),
        };
        if side <= 0.0 {
            return None;
        }
        let x = stream.uniform() * width as f64;
        let y = stream.uniform() * height as f64;
        let columns = covered(x, side, width, inclusive);
        Some((Hole { columns, rows: covered(y, side, height, inclusive) }, fill))
    }
}

/// Returns start and end of the hole in one dimension. The start is the centre minus half the side, at least zero, and the
/// end is the start plus the side, so only the right and the lower border cut the square.
fn covered(centre: f64, side: f64, len: usize, inclusive: bool) -> [usize; 2] {
    let first = (centre - side / 2.0).max(0.0) as usize;
    let end = (first as f64 + side).min(len as f64) as usize + usize::from(inclusive);
    [first, end.min(len)]
}
