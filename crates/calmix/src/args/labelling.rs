//! The arguments of the commands that get a pool of samples labelled.

pub mod certify;
pub mod demo;
pub mod label;
pub mod review;
pub mod verify;
