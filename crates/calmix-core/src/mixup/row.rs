//! The rows that are mixed.

/// A row of one of the two batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Row {
    /// A row of the labelled batch.
    Labelled(usize),
    /// A row of the unlabelled batch, weak view.
    Unlabelled(usize),
}
