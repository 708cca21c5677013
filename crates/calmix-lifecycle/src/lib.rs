//! What every training run does around its training, whether it trains a whole network or a head: it is prepared, claims its
//! folder, writes its first files, is evaluated, and writes its result.
//!
//! | question | module |
//! |---|---|
//! | what does `calmix train` decide, and which folder, table and split does a run get? | [`start`], with its [`start_notice`]s |
//! | how is a run to be trained: which sinks, which stop flag? | [`request`] |
//! | which samples is a run trained and evaluated on? | [`run_samples`], [`splits`]; its images are [`run_images`] |
//! | how is their table found or made, and what does it decide? | [`table`] |
//! | which pretrained weights does it begin with? | [`pretrained`] |
//! | what may a resumed run change? | [`changes`] |
//! | what does an evaluation compute, and what is written of it? | [`evaluation`]; [`stored_model`] for a run that has finished |
//! | which files does a run have when it begins, and when it has finished? | [`first_files`], [`result_files`] |
//! | how many vectors has a sample, and how long are they? | [`vector_shape`] |
//! | was a run trained on samples of another dataset? | [`trained_samples`] |
//!
//! `calmix-train` and `calmix-heads` are the two trainers: each makes a result of a prepared run. Whatever goes wrong here is a
//! [`LifecycleError`].
#![forbid(unsafe_code)]

pub mod changes;
mod error;
pub mod evaluation;
pub mod first_files;
pub mod pretrained;
pub mod request;
pub mod result_files;
pub mod run_images;
pub mod run_samples;
pub mod splits;
pub mod start;
pub mod start_notice;
pub mod storage_wait;
pub mod stored_model;
pub mod table;
pub mod threads;
pub mod trained_samples;
pub mod vector_shape;

pub use error::LifecycleError;
pub use table::table_error::TableError;
