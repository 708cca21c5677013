//! From bytes on disk to deterministic batches.
//!
//! What makes training irreproducible lives between a disk and a batch: generators that threads share, workers
//! whose timing decides the order, loaders that forget where they were. Here every row of every batch is a pure
//! function of the seed, the step and the row, so any number of workers gives the same bytes, and resuming needs
//! the step number and nothing else.
//!
//! | step | room |
//! |---|---|
//! | scan the files of a dataset once, list what is wrong with them | [`prepare`], one file per format in [`source`] |
//! | one table of all samples, read in place | [`manifest`], [`dataset`] |
//! | which samples keep their labels | [`split`] |
//! | which sample comes when | [`order`] |
//! | bytes → pixels | [`decode`], and [`mat`] for MATLAB's files |
//! | pixels → weak and strong views, with Pillow's bytes | [`augment`] |
//! | batches, made ahead by worker threads | [`loader`] |
//!
//! Whatever is read is hostile until checked: sizes before memory is taken, names before files are opened. What
//! cannot be used is a [`DataError`](error::DataError), whose sentence names the file, the place and what to try
//! next.
//!
//! From published files to batches:
//!
//! ```
//! use std::sync::Arc;
//! use calmix_core::rng::Seed;
//! use calmix_data::augment::Augment;
//! use calmix_data::dataset::Dataset;
//! use calmix_data::loader::{Loader, Supply, Training, Workers};
//! use calmix_data::prepare::{SourceSpec, prepare};
//! use calmix_data::source::idx::Classes;
//! use calmix_data::split::{Plan, Rule, Split};
//!
//! # let root = tempfile::tempdir()?;
//! # let idx = |kind, dims: &[u32], bytes: Vec<u8>| {
//! #     let dims = dims.iter().flat_map(|d| d.to_be_bytes());
//! #     [0, 0, 8, kind].into_iter().chain(dims).chain(bytes).collect::<Vec<u8>>()
//! # };
//! # for (name, n) in [("train", 100_u8), ("t10k", 20)] {
//! #     let pixels = (0..n).flat_map(|i| [i.wrapping_mul(37); 16]).collect();
//! #     let labels = (0..n).map(|i| i % 10).collect();
//! #     let images = idx(3, &[n.into(), 4, 4], pixels);
//! #     std::fs::write(root.path().join(format!("{name}-images-idx3-ubyte")), images)?;
//! #     std::fs::write(root.path().join(format!("{name}-labels-idx1-ubyte")), idx(1, &[n.into()], labels))?;
//! # }
//! # let (root, prepared) = (root.path(), &root.path().join("prepared"));
//! let report = prepare(&SourceSpec::Idx { classes: Classes::Digits }, root, prepared)?;
//! assert_eq!(report.samples(), 120);
//!
//! let dataset = Dataset::open(prepared, root)?;
//! let plan = Plan { rule: Rule::PerClass { labels: 4 }, ..Plan::new(Seed(0), "train") };
//! let split = Split::draw(&dataset, plan)?;
//! let training = Training {
//!     labelled: Supply { members: split.labelled().into(), batch: 8 },
//!     unlabelled: Supply { members: split.unlabelled(&dataset)?.into(), batch: 56 },
//!     ..Training::new(Seed(0), 0..3)
//! };
//! let views = Arc::new(Augment::usb(4));
//! for batch in Loader::new(Arc::new(dataset), views, training, Workers::default())? {
//!     assert_eq!(batch?.unlabelled.strong.len(), 56 * 4 * 4 * 3);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod augment;
pub mod dataset;
pub mod decode;
pub mod error;
mod expansion;
mod inside;
pub mod loader;
pub mod manifest;
pub mod mat;
pub mod order;
pub mod picture;
pub mod prepare;
pub mod source;
pub mod split;
