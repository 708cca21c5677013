//! The trainer of heads, without libtorch: on the user's vectors, or on images whose features a frozen backbone computes with
//! ONNX Runtime.
//!
//! | question | module |
//! |---|---|
//! | how does a run start and resume, top-down? | [`trainer`] |
//! | where do its vectors come from? | [`read_vectors`], or features of [`images`] |
//! | which vectors does it have? | [`head_vectors`], projected into a [`vector_table`] |
//! | which labels are near-duplicates of others? | [`label_copies`] |
//! | which weights do labels have in training? | `label_weights` |
//! | do they fit into memory? | [`head_memory`] |
//! | how does a run train its heads? | [`run_head`], with [`head_settings`] |
//! | with which features are new samples compared? | `reference_features` |
//! | are the unlabelled samples like the labelled ones? | `pool_comparison` |
//! | how is a head evaluated, also after the run? | [`evaluate_head`] |
//! | how is a classifier trained on vectors in memory, without a run? | [`vector_classifier`] |
//! | which vectors do the samples have before any is labelled? | [`pool_vectors`] |
//!
//! [`calmix_lifecycle`] prepares the runs and writes the files that every run has. The error of this crate is [`HeadsError`].
#![forbid(unsafe_code)]

mod error;
pub mod evaluate_head;
pub mod head_memory;
pub mod head_settings;
pub mod head_vectors;
pub mod images;
pub mod label_copies;
mod label_weights;
mod pool_comparison;
pub mod pool_vectors;
pub mod read_vectors;
mod reference_features;
pub mod run_head;
pub mod trainer;
pub mod vector_classifier;
pub mod vector_table;

pub use error::HeadsError;
