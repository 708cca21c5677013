//! Whole runs on a dataset of a few hundred tiny images.

mod left_out;
mod methods;
mod pretrained;
mod pseudo_labels;
mod refused;
mod result;
mod stopped;
mod trouble;
