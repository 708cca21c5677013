//! Guarantees for the predictions of any model, and the watch over those of a run.

pub(crate) mod guard;
pub(crate) mod monitor;
