//! Semi-supervised image classification with calibrated confidence.
//!
//! This crate is the binary `calmix`, its command line, and [`Model`], a trained model in use; networks run on ONNX Runtime.
//! `calmix-torch` trains whole networks, on libtorch. It re-exports the libraries it consists of:
//!
//! | module | crate | what it does |
//! |---|---|---|
//! | [`core`] | `calmix-core` | the method, on plain slices |
//! | [`data`] | `calmix-data` | bytes on disk → deterministic batches |
//! | [`formats`] | `calmix-formats` | readers of images, arrays, tables and archives |
//! | [`io`] | `calmix-io` | files that appear as a whole, their errors and locks, names from outside |
//! | [`metrics`] | `calmix-metrics` | measures of calibration, calibrators, prediction sets, abstention, intervals, tests |
//! | [`recipe`] | `calmix-recipe` | recipes, sweeps, and the words for networks and devices |
//! | [`report`] | `calmix-report` | run folders to tables, diagrams and pages |
//! | [`heads`] | `calmix-heads` | the trainer of heads, on images or vectors |
//! | [`lifecycle`] | `calmix-lifecycle` | what every run does around its training |
//! | [`run`] | `calmix-run` | the files of a run: folder, events, checkpoints, predictions |
//!
//! ```
//! use calmix::recipe::Layers;
//!
//! let resolved = Layers::new().recipe("cpu-cifar10").set("train.steps=100").resolve()?;
//! assert_eq!(resolved.recipe.train.steps, 100);
//! # Ok::<(), calmix::recipe::RecipeError>(())
//! ```
//!
//! The other modules are the command line, which `calmix-torch` shares; they are not an API.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

/// Compiles the example of this page as a doctest of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/use-the-model.md")]
struct UseTheModel;

#[doc(hidden)]
pub mod args;
mod certificate;
#[doc(hidden)]
pub mod command;
pub mod error;
mod export;
mod guarantees;
pub(crate) mod labelled;
pub(crate) mod labelling;
pub mod model;
#[doc(hidden)]
pub mod output;
pub mod predict;
#[doc(hidden)]
pub mod process;
#[cfg(feature = "https")]
mod remote;
mod review;
mod shapes;
mod sweep;
#[doc(hidden)]
pub mod terminal;
#[doc(hidden)]
pub mod trainer;

pub use calmix_core as core;
pub use calmix_data as data;
pub use calmix_data::cloud;
pub use calmix_formats as formats;
pub use calmix_heads as heads;
pub use calmix_io as io;
pub use calmix_lifecycle as lifecycle;
pub use calmix_metrics as metrics;
pub use calmix_recipe as recipe;
pub use calmix_report as report;
pub use calmix_run as run;
pub use model::Model;
