//! The commands that get a pool of samples labelled.

mod audit_files;
pub(super) mod certify;
pub(super) mod demo;
pub(super) mod label;
pub(super) mod review;
mod review_files;
mod review_vectors;
pub(super) mod verify;
