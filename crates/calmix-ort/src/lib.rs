//! Networks as ONNX graphs, run by ONNX Runtime: features of frozen backbones and predictions of trained networks.
//!
//! | question | module |
//! |---|---|
//! | which library is loaded, and which is refused? | [`library`] |
//! | how does a graph run on a batch? | [`session`] |
//! | how does a network with the weights of a file run on images? | [`image_network`] |
//! | what can go wrong? | [`error`] |
//!
//! # Why ONNX Runtime
//!
//! tract-onnx 0.23.9 is pure Rust, so that no library has to be found. But on one thread it ran 18 to 21 images per second
//! through EfficientNet-Lite0 at 160 pixels, against 100 with ONNX Runtime, and it took seven more minutes to compile. The other
//! crates use only [`session::OnnxSession`] and [`library::version`], so the runtime could be replaced.
//!
//! # Reproducibility
//!
//! The outputs of an image have the same bits with any number of threads and any split into batches. Another version of ONNX
//! Runtime or another generation of processors may differ in the last bits: under qemu, features with AVX-512, with AVX2 and
//! without either differed by up to 3e-6 of the largest feature (with AVX-512 and AVX2 those of EfficientNet-Lite0 were the
//! same).
//!
//! Only graphs that calmix wrote are run. The nodes of an external encoder have been read and checked one by one
//! (`calmix_onnx::foreign`), and `calmix` first runs it in a separate process.
#![forbid(unsafe_code)]

pub mod error;
pub mod image_network;
pub mod library;
pub mod session;
