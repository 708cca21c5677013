//! The tests of `calmix-data` from outside. They are one program, because linking a program for each file takes minutes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)] // in what the tests share

mod augment_views;
mod features;
mod folder;
mod formats;
mod golden_augment;
mod image_list;
mod labels_csv;
mod large_files;
mod loader;
mod mutants;
mod official;
mod parquet_images;
mod prepared;
mod scene;
mod shrink;
mod unsafe_paths;
mod vectors;
mod webdataset;
