//! The data of training and evaluation on images: their batches, and if the backbone is frozen, the features in place of
//! the images.

pub(super) mod feature_work;
pub(super) mod frozen_features;
pub(super) mod image_copies;
pub(super) mod make_features;
pub(super) mod next_batch;
pub(super) mod pretrained;
pub(super) mod train_data;
