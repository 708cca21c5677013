//! Pretrained weights: their files, their folder, and their configurations.

pub mod config;
pub mod encoder_config;
pub mod weights_file;
pub mod weights_folder;
