//! From bytes on disk to deterministic batches.
#![forbid(unsafe_code)]

pub mod augment;
pub mod error;
pub mod manifest;
pub mod picture;
