//! Runs of heads on images: the images, the backbone, its features and their cache.
//!
//! [`run_images`](calmix_lifecycle::run_images) reads the images of a run; [`backbone_file`](calmix_lifecycle::pretrained::backbone_file) is the file of the frozen backbone; ONNX Runtime computes its
//! features, which [`frozen_features`](self) keeps in a cache that runs share; near-duplicates among the labels are searched in
//! features and pixels.

pub mod backbone;
pub mod feature_work;
pub(crate) mod frozen_features;
mod image_copies;
pub(crate) mod make_features;

pub use feature_work::PageShard;
