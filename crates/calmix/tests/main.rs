//! The tests of the program `calmix` and its library that need no libtorch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)] // in what the tests share

mod cli;
mod earlier_version;
mod encoder;
mod export_vectors;
mod feature_sets;
mod interrupted;
mod killed_commands;
mod labelled_vectors;
mod model_files;
mod neighbours;
mod planted;
mod predict_vectors;
mod sweep_vectors;
mod torch_program;
mod train_vectors;
mod vector_memory;
mod vector_signals;
mod verdict;
mod weights_get;
