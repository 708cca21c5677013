//! `calmix sweep`, whatever its runs are trained on: how they are planned, trained by workers and summarised.
//!
//! [`plan`] reads the sweep; a [`SweepRun`] knows how one run is trained: [`HeadCell`] a head, and a type of `calmix-torch` a
//! whole network.

mod head_cell;
pub mod plan;
mod results;
mod sweep_run;
mod worker;

pub use head_cell::{BY_FOLDER, HeadCell, image_draft, no_dataset};
pub use sweep_run::{SweepRun, over, refuse_changes};
