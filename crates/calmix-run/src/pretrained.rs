//! Pretrained weights: their files, the folder that they are kept in, and the configurations beside them.

pub mod config;
pub mod encoder_config;
pub mod weights_file;
pub mod weights_folder;
