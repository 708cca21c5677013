//! The tests of both programs together, and of networks on both runtimes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)] // in what the tests share

mod cli;
mod cloud;
mod onnx;
mod onnx_runtime;
mod program;
mod stops;
