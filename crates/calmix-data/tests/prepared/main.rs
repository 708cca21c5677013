//! Datasets from the first byte that is prepared to the last id of a split.
// Clippy spares functions marked as tests, not those that make datasets for them.
#![allow(clippy::unwrap_used)]

mod groups;
mod hostile;
mod reading;
mod real;
mod report;
mod splits;
mod tiny;
