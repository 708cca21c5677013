//! A mixture of two rows.

/// A row of one of the two batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Row {
    /// A row of the labelled batch.
    Labelled(usize),
    /// A row of the unlabelled batch, weak view.
    Unlabelled(usize),
}

/// One mixture: `λ·a + (1 − λ)·b`, images and targets alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// The first row, which λ multiplies: the labelled one in CalibrateMix's pairs.
    pub a: Row,
    /// The second row.
    pub b: Row,
    /// λ, the share of `a` in the mixture, in [0, 1].
    pub lambda: f32,
    /// The (pseudo-)label of `a`.
    pub class_a: u32,
    /// The (pseudo-)label of `b`.
    pub class_b: u32,
    /// Its factor in the mixup loss: 1/|D_M|, times the weight of the pair and that of the starting mixup term.
    pub weight: f32,
}
