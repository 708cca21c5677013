//! Networks and the training step, on libtorch.
#![forbid(unsafe_code)]

pub mod batch;
pub mod device;
pub mod engine;
pub mod error;
pub mod images;
mod loss;
pub mod loss_scale;
mod model;
pub mod network;
pub mod optimiser;
mod parameters;
pub mod precision;
mod statistics;
pub mod step;
pub mod weights;
