//! The data of training and evaluation: batches of images.

pub(super) mod next_batch;
pub(super) mod train_data;
