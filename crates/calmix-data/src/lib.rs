//! From bytes on disk to deterministic batches.
//!
//! Every row of every batch is a pure function of the seed, the step and the row. Threads share no random generator
//! and their timing decides nothing, so any number of workers gives the same bytes, and a resumed run needs only the
//! step number.
//!
//! | step | module |
//! |---|---|
//! | scan the files of a dataset once and list what is wrong with them | [`prepare`], one file per format in [`source`] |
//! | one table of all samples, read in place | [`manifest`], [`dataset`] |
//! | which samples belong together: a patient, a video | [`groups`] |
//! | which samples keep their labels | [`split`] |
//! | which sample comes when | [`calmix_core::order`] |
//! | bytes → pixels, arrays, tables, vectors | [`calmix_formats`] |
//! | pixels → weak and strong views, with Pillow's bytes | [`augment`] |
//! | batches, made ahead by worker threads | [`loader`] |
//! | large images, shrunk once | [`shrink`] |
//! | copies of an image, by its pixels | [`pixel_similarity`] |
//! | features of a frozen backbone, cached for later runs | [`features`] |
//! | where tables and runs are written by default | [`default_paths`] |
//! | images to predict, without a table | [`image_list`] |
//!
//! All input is untrusted: sizes are checked before memory is allocated, names before files are opened. Input that
//! cannot be used is a [`DataError`](error::DataError), which names the file, the place in it and what to try next.
//!
//! From published files to batches:
//!
//! ```
//! use std::sync::Arc;
//! use calmix_core::rng::Seed;
//! use calmix_data::augment::Augment;
//! use calmix_data::dataset::Dataset;
//! use calmix_data::loader::{Loader, ImageViews, SampleStream, Training, Workers};
//! use calmix_data::prepare::prepare;
//! use calmix_data::source::SourceSpec;
//! use calmix_data::source::idx::Classes;
//! use calmix_data::split::{LabelSplit, Rule, SplitPlan};
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
//! let plan = SplitPlan { rule: Rule::PerClass { labels: 4 }, ..SplitPlan::new(Seed(0), "train") };
//! let split = LabelSplit::draw(&dataset, plan)?;
//! let training = Training {
//!     labelled: SampleStream { ids: split.labelled().into(), batch: 8 },
//!     unlabelled: SampleStream { ids: split.unlabelled(&dataset)?.into(), batch: 56 },
//!     ..Training::new(Seed(0), 0..3)
//! };
//! let transform = Arc::new(Augment::usb(4));
//! for batch in Loader::new(ImageViews::new(Arc::new(dataset), transform), training, Workers::default())? {
//!     assert_eq!(batch?.unlabelled.strong.len(), 56 * 4 * 4 * 3);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub use calmix_cloud as cloud;

pub mod augment;
pub mod data_warning;
pub mod dataset;
pub mod default_paths;
pub mod error;
pub mod features;
pub mod groups;
pub mod image_list;
pub mod loader;
pub mod manifest;
mod outage;
pub mod pixel_similarity;
pub mod prepare;
pub mod prepare_progress;
pub mod sample_list;
pub mod shrink;
pub mod source;
pub mod split;
