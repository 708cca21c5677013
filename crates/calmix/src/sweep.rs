//! `calmix sweep`, whatever its runs are trained on: [`plan`] reads the sweep, a worker trains its runs, and their results are
//! summarised.

pub(crate) mod plan;
mod results;
pub(crate) mod sweep_file;
mod sweep_run;
mod worker;
