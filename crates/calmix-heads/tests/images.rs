//! Runs of heads on the features of a few hundred tiny images.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)] // in the functions that the tests share

#[path = "images/draft.rs"]
mod draft;
#[path = "images/encoders.rs"]
mod encoders;
#[path = "images/feature_cache.rs"]
mod feature_cache;
#[path = "images/head.rs"]
mod head;
#[path = "images/image_copies.rs"]
mod image_copies;
#[path = "images/listed.rs"]
mod listed;
#[path = "images/made.rs"]
mod made;
#[path = "images/pretrained_layer.rs"]
mod pretrained_layer;
#[path = "images/refused.rs"]
mod refused;
#[path = "images/runtime.rs"]
mod runtime;
