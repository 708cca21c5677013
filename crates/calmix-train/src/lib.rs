//! Training runs: from a dataset and a recipe to a calibrated model, with every failure on the way handled.
//!
//! | question | module |
//! |---|---|
//! | how does it train, and how is a run resumed? | [`trainer`] |
//! | how far is a run? | [`inspect`] |
//! | which pretrained weights are available? | [`weights_folder`], each a [`weights_file`] |
//! | what do they say of a recipe? | [`pretrained_layer`] |
//! | who are the processes of a run, as their launcher says? | [`launch`] |
//!
//! What is trained, on what, for how long, is a recipe of [`calmix_recipe`]. What a run leaves behind is in [`calmix_run`].
#![forbid(unsafe_code)]

pub mod inspect;
pub mod pretrained_layer;
pub mod start;
pub mod trainer;
pub mod weights_file;
pub mod weights_folder;

pub use calmix_dist::launch;
pub use start::train_folder;
