//! The environment of this process: its launcher, system limits, and Python environment.
//!
//! | question | module |
//! |---|---|
//! | which process of a job is this, as a launcher says? | [`launch`] |
//! | how much memory and how many open files may it have? | [`limits`] |
//! | which packages does its Python environment have? | [`python_environment`] |

pub mod launch;
pub mod limits;
pub mod python_environment;
