//! Runs of heads, without libtorch: on vectors that the user has, and on images whose features a frozen backbone computes on
//! ONNX Runtime.
//!
//! | question | module |
//! |---|---|
//! | what does `calmix train` decide, and which folder, table and split does a run get? | [`start`] |
//! | which samples is a run trained and evaluated on? | [`run_samples`], [`splits`]; and in which [`prepared_table`] |
//! | how is their table found or made, and what does it decide? | [`table`], [`table_splits`], with its [`start_notice`]s |
//! | which vectors do they have? | [`head_vectors`], through a [`vector_projection`], in a [`vector_table`] |
//! | which labels are near-duplicates of others? | [`label_copies`] |
//! | do they fit into memory? | [`head_memory`] |
//! | how does a run start and resume? | [`head_trainer`]; on what does it run? [`head_runtime`] |
//! | where do its vectors come from? | [`read_vectors`], or features of [`images`] |
//! | how is a classifier trained on vectors in memory, without a run? | [`vector_classifier`] |
//! | how does a run train its heads, top-down? | [`run_head`], with [`head_settings`] and [`evaluate_head`] |
//! | what does an evaluation compute, and what is written of it? | [`evaluation`], [`evaluation_log`], [`final_evaluation`] |
//! | how is a finished run evaluated again? | [`reevaluate`] |
//! | was a run trained on samples of another dataset? | [`trained_samples`] |
//! | which files does a run have when it begins, and when it has finished? | [`first_files`], [`result_files`] |
//!
//! `calmix-train` uses it for what the runs of whole networks have in common with these: start, samples, images and files. Whatever goes wrong is a [`VectorsError`].
#![forbid(unsafe_code)]

mod error;
pub mod evaluate_head;
pub mod evaluation;
pub mod evaluation_log;
pub mod final_evaluation;
pub mod first_files;
pub mod head_memory;
pub mod head_runtime;
pub mod head_settings;
pub mod head_trainer;
pub mod head_vectors;
pub mod images;
pub mod label_copies;
pub mod prepared_table;
pub mod read_vectors;
pub mod reevaluate;
pub mod result_files;
pub mod run_head;
pub mod run_samples;
mod shared_table;
pub mod splits;
pub mod start;
pub mod start_notice;
pub mod storage_wait;
pub mod table;
mod table_error;
pub mod table_splits;
pub mod threads;
pub mod trained_samples;
pub mod vector_classifier;
pub mod vector_projection;
pub mod vector_table;
pub mod work_count;

pub use error::VectorsError;
pub use table_error::TableError;
