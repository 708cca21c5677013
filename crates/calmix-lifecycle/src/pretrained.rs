//! The pretrained weights that a run begins with, or that are its frozen backbone: safetensors of a network that calmix builds, or
//! an ONNX encoder.

pub mod backbone_file;
pub mod encoder_file;
pub mod weights_hash;
