//! From bytes on disk to deterministic batches.
#![forbid(unsafe_code)]

pub mod dataset;
pub mod decode;
pub mod error;
mod expansion;
pub mod manifest;
pub mod mat;
pub mod picture;
pub mod prepare;
pub mod source;
pub mod split;
