//! From bytes on disk to deterministic batches.
#![forbid(unsafe_code)]

pub mod decode;
pub mod error;
pub mod manifest;
pub mod picture;
pub mod prepare;
pub mod source;
