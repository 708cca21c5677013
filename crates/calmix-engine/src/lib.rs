//! The engine: networks and the training step on libtorch.
//!
//! Only this crate and `calmix-dist` name libtorch. Its build script refuses any libtorch but the one that `tch` is
//! made for, and writes the folder of that libtorch into the binaries it links.
#![forbid(unsafe_code)]
