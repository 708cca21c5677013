//! Runs of heads on the features of a few hundred tiny images.

mod draft;
mod encoders;
mod feature_cache;
mod head;
mod image_copies;
mod listed;
mod made;
mod pretrained_layer;
mod refused;
mod runtime;
