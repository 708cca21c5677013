//! From bytes on disk to deterministic batches.
#![forbid(unsafe_code)]

pub mod augment;
pub mod dataset;
pub mod decode;
pub mod error;
mod expansion;
mod inside;
pub mod loader;
pub mod manifest;
pub mod mat;
pub mod order;
pub mod picture;
pub mod prepare;
pub mod source;
pub mod split;
