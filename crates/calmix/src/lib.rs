//! Semi-supervised image classification with calibrated confidence.
//!
//! This crate is the binary `calmix` and [`Model`], a trained model in use. It re-exports the libraries it consists of:
//!
//! | module | crate | what it does |
//! |---|---|---|
//! | [`core`] | `calmix-core` | the method, on plain slices |
//! | [`data`] | `calmix-data` | bytes on disk → deterministic batches |
//! | [`engine`] | `calmix-engine` | networks and the training step, on libtorch |
//! | [`io`] | `calmix-io` | files that appear as a whole, their errors and locks, names from outside |
//! | [`metrics`] | `calmix-metrics` | measures of calibration, calibrators, prediction sets, abstention, intervals, tests |
//! | [`recipe`] | `calmix-recipe` | recipes, sweeps, and the words for networks and devices |
//! | [`report`] | `calmix-report` | run folders to tables, diagrams and pages |
//! | [`run`] | `calmix-run` | the files of a run: folder, events, checkpoints, predictions |
//! | [`train`] | `calmix-train` | the trainer |
//!
//! ```
//! use calmix::recipe::Layers;
//!
//! let resolved = Layers::new().recipe("cpu-cifar10").set("train.steps=100").resolve()?;
//! assert_eq!(resolved.recipe.train.steps, 100);
//! # Ok::<(), calmix::recipe::RecipeError>(())
//! ```
#![forbid(unsafe_code)]

pub mod model;

pub use calmix_core as core;
pub use calmix_data as data;
pub use calmix_engine as engine;
pub use calmix_io as io;
pub use calmix_metrics as metrics;
pub use calmix_recipe as recipe;
pub use calmix_report as report;
pub use calmix_run as run;
pub use calmix_train as train;
pub use model::Model;
