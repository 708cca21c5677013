//! The arguments of the commands that get a pool of samples labelled.

pub mod review;
