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
//! | [`vectors`] | `calmix-vectors` | runs that train heads, on images or vectors |
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

/// Compiles the example of this page as a doctest of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/use-the-model.md")]
struct UseTheModel;

#[doc(hidden)]
pub mod calibration;
#[doc(hidden)]
pub mod command;
#[doc(hidden)]
pub mod cores;
#[doc(hidden)]
pub mod data_warnings;
#[doc(hidden)]
pub(crate) mod encoder_trial;
pub mod error;
#[doc(hidden)]
pub mod evaluate;
#[doc(hidden)]
pub mod exit;
#[doc(hidden)]
pub mod explained_error;
#[doc(hidden)]
pub mod export;
#[doc(hidden)]
pub mod format;
#[doc(hidden)]
pub mod head_table;
#[cfg(feature = "https")]
mod https;
#[cfg(feature = "https")]
mod hub;
#[doc(hidden)]
pub mod input_shard;
mod labelled_images;
#[doc(hidden)]
pub mod labelled_samples;
mod labelled_vectors;
#[doc(hidden)]
pub mod launched;
mod loaded_model;
#[doc(hidden)]
pub mod metric_table;
#[cfg(feature = "https")]
mod mlflow;
pub mod model;
#[doc(hidden)]
pub mod model_files;
#[doc(hidden)]
pub mod model_folder;
pub mod model_options;
#[doc(hidden)]
pub mod moved_data;
#[doc(hidden)]
pub mod notice_printer;
mod precision_difference;
pub mod predict;
#[doc(hidden)]
pub mod processor;
#[doc(hidden)]
pub mod progress;
mod quicker;
#[doc(hidden)]
pub mod rate;
#[doc(hidden)]
pub mod recipe_warnings;
mod replaced_table;
#[doc(hidden)]
pub mod run_files;
mod run_list;
#[doc(hidden)]
pub mod run_outcome;
#[doc(hidden)]
pub mod run_summary;
#[doc(hidden)]
pub mod runs_here;
#[doc(hidden)]
pub mod same_command;
#[doc(hidden)]
pub mod start_notice;
#[doc(hidden)]
pub mod stop;
#[doc(hidden)]
pub mod sweep;
#[doc(hidden)]
pub mod telemetry;
#[doc(hidden)]
pub mod terminal;
#[doc(hidden)]
pub mod torch_program;
#[doc(hidden)]
pub mod trained_labels;
#[doc(hidden)]
pub mod vector_model;
mod verdict;
#[doc(hidden)]
pub mod version;
#[doc(hidden)]
pub mod weights_hint;

pub use calmix_core as core;
pub use calmix_data as data;
pub use calmix_data::cloud;
pub use calmix_formats as formats;
pub use calmix_io as io;
pub use calmix_metrics as metrics;
pub use calmix_recipe as recipe;
pub use calmix_report as report;
pub use calmix_run as run;
pub use calmix_vectors as vectors;
pub use model::Model;
