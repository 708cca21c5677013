//! Readers for the formats of datasets: images, arrays, tables, archives.
//!
//! | format | module |
//! |---|---|
//! | JPEG, PNG and WebP | [`decode`] |
//! | `.npy`, `.npz`, safetensors, Parquet and CSV with vectors | [`vectors`] |
//! | NumPy's `.npy`, MATLAB's `.mat`, IDX, tar | [`npy`], [`mat`], [`idx`], [`tar`] |
//! | Parquet, column by column; Parquet with images in it | [`parquet_file`], [`parquet_images`] |
//! | probabilities of a model, as CSV or Parquet; the classes it predicted | [`probability_table`], [`labels::predicted`] |
//! | labels and groups: their columns, and CSV files of them | [`labels`] |
//! | folders of files, files of records | [`listing`], [`source_dir`] |
//!
//! A reader knows only the bytes and their location, nothing of datasets, splits or batches. All input is untrusted: sizes
//! are checked before memory is allocated, names before files are opened. Unusable input is a
//! [`FormatError`](error::FormatError).
//!
//! A vector format implements a trait in `vectors`, an image format one in `decode`; each is registered in one place, next
//! to the callers of its trait.
#![forbid(unsafe_code)]

pub mod csv_lines;
pub mod decode;
pub mod element_type;
pub mod error;
pub mod expansion;
pub mod idx;
pub mod image;
pub mod labels;
pub mod listing;
pub mod mat;
mod memory_budget;
pub mod npy;
pub mod parquet_file;
pub mod parquet_images;
pub mod probability_table;
pub mod read_at;
pub mod source_dir;
pub mod tar;
pub mod vectors;
