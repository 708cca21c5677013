//! The files of a run that hold plain numbers, as safetensors.

pub mod examples;
pub mod head_files;
pub mod predictions_file;
pub mod sample_files;
pub(crate) mod tensors;
