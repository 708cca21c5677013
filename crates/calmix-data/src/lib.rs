//! From bytes on disk to deterministic batches.
#![forbid(unsafe_code)]

pub mod augment;
pub mod error;
pub mod loader;
pub mod manifest;
pub mod order;
pub mod picture;
