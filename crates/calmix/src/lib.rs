//! calmix trains image classifiers from a few labels and many unlabelled images, and makes the confidence they
//! report true.
//!
//! This crate is the binary `calmix` and, for programs, one name for the crates it is made of:
//!
//! | here | is | what it does |
//! |---|---|---|
//! | [`core`] | `calmix-core` | the method and the measures of calibration, on plain slices |
//! | [`data`] | `calmix-data` | bytes on disk → deterministic batches |
//! | [`engine`] | `calmix-engine` | networks and the training step, on libtorch |
//! | [`train`] | `calmix-train` | recipe, run, checkpoint, evaluation |
//!
//! ```
//! use calmix::train::recipe::Layers;
//!
//! let resolved = Layers::new().recipe("desk-cifar10").set("train.steps=100").resolve()?;
//! assert_eq!(resolved.recipe.train.steps, 100);
//! # Ok::<(), calmix::train::recipe::RecipeError>(())
//! ```
#![forbid(unsafe_code)]

pub use calmix_core as core;
pub use calmix_data as data;
pub use calmix_engine as engine;
pub use calmix_train as train;
