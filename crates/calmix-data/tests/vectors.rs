//! Vectors in every format that calmix reads: what other tools wrote, and files that are refused.
// Clippy spares functions marked as tests, not those that make their inputs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "vectors/groups.rs"]
mod groups;
#[path = "vectors/labels.rs"]
mod labels;
#[path = "vectors/same.rs"]
mod same;
