//! What the tests of several crates share. No program depends on it.
//!
//! | question | module |
//! |---|---|
//! | how much of a test runs, and which test cannot run here? | [`tier`] |
//! | which interpreter has a Python package? | [`python`]; what does ONNX Runtime compute of a model? [`onnxruntime`] |
//! | what is compared? | printed texts ([`golden`]), the files of two runs ([`run_bytes`]), the memory of a process ([`memory`]) |
//! | which images and vectors are there? | [`photos`] (of other programs), [`png_file`], [`npy_file`], [`tiny_images`], [`dataset_files`] |
//! | which models? | [`foreign_model`], and with the feature `networks` `network_weights` |
//! | what fails? | a disk ([`faulty_disk`]), servers ([`servers`]), the cable between [`hosts`], a program at random moments ([`stop_program`]) |
//! | what watches a run? | with the feature `sinks`, `sinks` |
//! | where are commands of `calmix` run? | with the feature `workspace`, `workspace` |
#![forbid(unsafe_code)]
// The lints of the workspace except tests from these; what is here is a part of tests.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::unwrap_used)]
#![allow(clippy::missing_panics_doc, missing_docs)]

pub mod dataset_files;
pub mod faulty_disk;
pub mod foreign_model;
pub mod golden;
pub mod hosts;
pub mod memory;
#[cfg(feature = "networks")]
pub mod network_weights;
pub mod npy_file;
pub mod onnxruntime;
pub mod photos;
pub mod png_file;
pub mod python;
pub mod run_bytes;
pub mod servers;
#[cfg(feature = "sinks")]
pub mod sinks;
pub mod stop_program;
pub mod tier;
pub mod tiny_images;
#[cfg(feature = "workspace")]
pub mod workspace;
