//! Training runs: from a dataset and a recipe to a calibrated model, and everything in between that can go wrong.
//!
//! | question | module |
//! |---|---|
//! | what is trained, on what, for how long? | [`recipe`] |
//! | how does it train, and how does a run go on where it was stopped? | [`trainer`] |
//! | how far is a run? | [`inspect`] |
//! | who are the processes of a run, as their launcher says? | [`launch`] |
//!
//! What a run leaves behind is in [`calmix_run`].
#![forbid(unsafe_code)]

pub mod inspect;
pub mod recipe;
pub mod trainer;

pub use calmix_dist::launch;
