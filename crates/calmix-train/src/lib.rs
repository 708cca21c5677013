//! Training runs: from a recipe to a folder that holds everything the run learnt and how.
//!
//! - what is trained, on what, for how long: [`recipe`].
#![forbid(unsafe_code)]

pub mod recipe;
