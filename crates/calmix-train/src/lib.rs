//! Training runs of whole networks: from a dataset and a recipe to a calibrated model, with every failure on the way handled.
//!
//! | question | module |
//! |---|---|
//! | how does it train, and how is a run resumed? | [`trainer`] |
//! | how does a program train on a folder of images, with one call? | [`train_folder()`] |
//! | which processes of a run did a launcher start? | [`launch`] |
//!
//! What is trained, on what data and for how long is a recipe of [`calmix_recipe`]. [`calmix_heads`] prepares runs
//! ([`calmix_lifecycle::start`]) and trains heads. The files of a run are in [`calmix_run`].
#![forbid(unsafe_code)]

mod train_folder;
pub mod trainer;

pub use calmix_dist::launch;
pub use train_folder::{TrainedRun, train_folder};
