//! RandAugment (Cubuk et al., 2020): a few random operations with random magnitudes.

use calmix_core::rng::Stream;
use serde::{Deserialize, Serialize};

use super::op::Op;

/// The rule that draws the operations. Each draws with replacement from the same fourteen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum RandAugment {
    /// USB, TorchSSL: each operation is applied, with a magnitude uniform in its range.
    Usb {
        /// The number of operations; three in USB.
        operations: u32,
    },
    /// Google's FixMatch: each operation is applied with probability ½, at one of nine levels.
    Google {
        /// The number of operations; two in FixMatch.
        operations: u32,
    },
}

/// Exclusive upper bound of the levels of Google's rule, which start at 1.
const LEVELS: u64 = 10;

impl RandAugment {
    /// Draws operations and their magnitudes for a canvas of this width and height, in order of application.
    pub fn draw(self, sides: [usize; 2], stream: &mut Stream) -> impl Iterator<Item = (Op, f64)> {
        let operations = match self {
            Self::Usb { operations } | Self::Google { operations } => operations,
        };
        (0..operations).filter_map(move |_| {
            let op = Op::ALL[stream.index(Op::ALL.len())];
            match self {
                Self::Usb { .. } => {
                    let [low, high] = op.range();
                    Some((op, low + (high - low) * stream.uniform()))
                }
                Self::Google { .. } => {
                    let level = 1 + stream.below(LEVELS - 1);
                    let applied = stream.below(2) == 1;
                    let negative = stream.below(2) == 1;
                    applied.then(|| (op, google_magnitude(op, level as f64, negative, sides)))
                }
            }
        })
    }
}

/// Converts a level of Google's rule to a magnitude: a tenth of the range per level, in whole bits, degrees, thresholds or
/// pixels, with a random sign for rotations, shears and translations.
fn google_magnitude(op: Op, level: f64, negative: bool, [width, height]: [usize; 2]) -> f64 {
    let part = |of: f64| level * of / LEVELS as f64;
    let signed = |x: f64| if negative { -x } else { x };
    let whole_pixels = |side: usize| signed((part(0.3) * side as f64).trunc() / side.max(1) as f64);
    match op {
        Op::Autocontrast | Op::Equalise | Op::Identity => part(1.0),
        Op::Brightness | Op::Colour | Op::Contrast | Op::Sharpness => part(0.9) + 0.05,
        Op::Posterise => part(4.0).trunc() + 4.0,
        Op::Rotate => signed(part(30.0).trunc()),
        Op::ShearX | Op::ShearY => signed(part(0.3)),
        Op::Solarise => 256.0 - part(256.0).trunc(),
        Op::TranslateX => whole_pixels(width),
        Op::TranslateY => whole_pixels(height),
    }
}
