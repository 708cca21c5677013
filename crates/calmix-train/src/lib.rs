//! Training runs: from a dataset and a recipe to a calibrated model, with every failure on the way handled.
//!
//! | question | module |
//! |---|---|
//! | how does it train, and how is a run resumed? | [`trainer`] |
//! | which keys of a recipe do pretrained weights set? | [`pretrained_layer`] |
//! | which processes of a run did a launcher start? | [`launch`] |
//!
//! What is trained, on what data and for how long is a recipe of [`calmix_recipe`]. The files of a run are in [`calmix_run`].
#![forbid(unsafe_code)]

pub mod pretrained_layer;
pub mod start;
pub mod trainer;

pub use calmix_dist::launch;
pub use start::train_folder;
