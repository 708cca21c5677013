//! Labelled samples of others: how they are opened, and which of them a run was trained on.

pub(crate) mod images;
pub(crate) mod samples;
pub(crate) mod trained_labels;
pub(crate) mod vectors;
