//! The parts of a run that do not depend on whether it trains a whole network or a head: preparation, folder, first files,
//! evaluation, result.
//!
//! | question | module |
//! |---|---|
//! | what does `calmix train` decide, and which folder, dataset and split does a run get? | [`start`], with its [`start_context`] |
//! | how is a run to be trained: which sinks, which stop flag, how many threads? | [`request`] |
//! | which samples is a run trained and evaluated on? | [`run_samples`], [`splits`]; its images are [`run_images`] |
//! | how is its dataset found or prepared? | [`prepared_dataset`] |
//! | which pretrained weights does it begin with? | [`pretrained`] |
//! | what may a resumed run change? | [`changes`] |
//! | what does an evaluation compute and write? | [`evaluation`] |
//! | which files does a run have when it begins, and when it has finished? | [`run_files`] |
//! | was a run trained on samples of another dataset? | [`trained_samples`] |
//!
//! The two trainers, `calmix-train` and `calmix-heads`, turn a prepared run into a result. The error of this crate is
//! [`LifecycleError`].
#![forbid(unsafe_code)]

pub mod changes;
mod error;
pub mod evaluation;
pub mod prepared_dataset;
pub mod pretrained;
pub mod request;
pub mod run_files;
pub mod run_images;
pub mod run_samples;
pub mod splits;
pub mod start;
pub mod start_context;
pub mod trained_samples;

pub use error::LifecycleError;
