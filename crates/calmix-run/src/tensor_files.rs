//! Files of a run with plain numbers, in the safetensors format.

pub mod examples;
pub mod head_files;
pub mod predictions_file;
pub mod reference_file;
pub mod sample_files;
pub(crate) mod tensors;
