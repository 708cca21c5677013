//! The division of confidences into bins.

use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

/// The division of confidences into bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binning {
    /// Intervals of equal width, bin `i` of `bins` from `i / bins` to `(i + 1) / bins`.
    EqualWidth {
        /// The number of bins.
        bins: NonZeroU16,
        /// The bin to which an edge belongs.
        edges: Edges,
    },
    /// Equally many predictions in every bin, as far as ties allow.
    ///
    /// With the confidences sorted, the prediction of rank `r` among `n` belongs to bin `⌊r · bins / n⌋`. Equal
    /// confidences stay together in the bin of the middle of their ranks, so that the order of the rows does not
    /// matter. Empty bins are left out.
    EqualMass {
        /// The number of bins.
        bins: NonZeroU16,
    },
}

/// The bin to which a confidence on an edge belongs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Edges {
    /// `[a, b)`, and the last bin includes 1.
    #[default]
    LeftClosed,
    /// `(a, b]`, and the first bin includes 0.
    RightClosed,
    /// `[a, b)`, and a confidence of exactly 1 in a separate bin after the last one, as in torchmetrics
    /// (its issue 3510). For comparison with numbers made there.
    Torchmetrics,
}

/// The default number of bins.
pub(in crate::measure) const FIFTEEN: NonZeroU16 = NonZeroU16::MIN.saturating_add(14);

impl Default for Binning {
    /// Returns fifteen bins of equal width, left closed.
    fn default() -> Self {
        Self::EqualWidth { bins: FIFTEEN, edges: Edges::LeftClosed }
    }
}
