//! Heads on feature vectors: a linear layer, or one hidden layer, trained in seconds on the vectors of a frozen network.
//!
//! No tensor library and no I/O: a head is a few matrix products. [`fit()`] takes vectors, labels and settings, and returns the
//! head with its calibrator and the predictions for labels that it was trained without. Every base algorithm and every kind of
//! mixup of `calmix-core` works on vectors as on images; only the second full pass of the authors' code and similarity between
//! pixels are refused.
//!
//! The result does not depend on the number of threads: each head is trained by one thread.
//!
//! # Modules
//!
//! - what is trained on: [`samples`], [`sample_vectors`], [`projection`];
//! - one head: [`network`], [`model`] with its projection, [`settings`], [`training`];
//! - heads without steps: [`mod@logistic_regression`] on the labels alone, [`mod@gaussian_mixture`] and [`neighbours`] on all
//!   samples;
//! - the choice among heads: [`mod@fit`], with its [`progress`];
//! - the choice of samples to label first: [`typical_samples`].
#![deny(unsafe_code)]
#![warn(missing_docs)]

mod error;
pub mod fit;
pub mod gaussian_mixture;
pub mod logistic_regression;
pub mod loss;
pub mod model;
pub mod near_duplicates;
pub mod neighbours;
pub mod network;
pub mod parallel;
mod product;
pub mod progress;
pub mod projection;
pub mod sample_vectors;
pub mod samples;
pub mod settings;
pub mod training;
pub mod typical_samples;

pub use error::HeadError;
pub use fit::fit;
