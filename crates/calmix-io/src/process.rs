//! The environment of this process: its launcher, memory, and Python environment.
//!
//! | question | module |
//! |---|---|
//! | which process of a job is this, as a launcher says? | [`launch`] |
//! | how much memory may it have? | [`memory`] |
//! | which packages does its Python environment have? | [`python_environment`] |

pub mod launch;
pub mod memory;
pub mod python_environment;
