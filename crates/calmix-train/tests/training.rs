//! Whole runs on a dataset of a few hundred tiny images.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // in the functions that the tests share

#[path = "training/left_out.rs"]
mod left_out;
#[path = "training/made.rs"]
mod made;
#[path = "training/methods.rs"]
mod methods;
#[path = "training/pretrained.rs"]
mod pretrained;
#[path = "training/pseudo_labels.rs"]
mod pseudo_labels;
#[path = "training/refused.rs"]
mod refused;
#[path = "training/result.rs"]
mod result;
#[path = "training/stopped.rs"]
mod stopped;
#[path = "training/trouble.rs"]
mod trouble;
