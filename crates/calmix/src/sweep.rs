//! `calmix sweep`, whatever its runs are trained on: how they are planned, trained by workers and summarised.
//!
//! [`plan`] reads the sweep; a [`SweepRun`] knows how one run is trained: [`VectorRun`] on vectors, without libtorch, and a type of
//! `calmix-torch` on images.

pub mod plan;
mod results;
mod sweep_run;
mod vector_run;
mod worker;

pub use sweep_run::{SweepRun, over, refuse_changes};
pub use vector_run::VectorRun;
