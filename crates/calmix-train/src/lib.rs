//! Training runs: from a dataset and a recipe to a calibrated model, with every failure on the way handled.
//!
//! | question | module |
//! |---|---|
//! | what is trained, on what, for how long? | [`recipe`] |
//! | how does it train, and how is a run resumed? | [`trainer`] |
//! | how far is a run? | [`inspect`] |
//! | which pretrained weights are at hand? | [`weights_folder`], each a [`weights_file`] |
//! | which runs are in a sweep? | [`sweep`] |
//! | who are the processes of a run, as their launcher says? | [`launch`] |
//!
//! What a run leaves behind is in [`calmix_run`].
#![forbid(unsafe_code)]

pub mod inspect;
pub mod recipe;
pub mod start;
pub mod sweep;
pub mod trainer;
pub mod weights_file;
pub mod weights_folder;

pub use calmix_dist::launch;
pub use start::train_folder;
