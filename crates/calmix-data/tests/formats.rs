//! The binary sources: every pixel in its place, the published datasets whole, and hostile files.
// Clippy spares functions marked as tests, not those that make their inputs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "formats/golden.rs"]
mod golden;
#[path = "formats/hostile.rs"]
mod hostile;
#[path = "formats/published.rs"]
mod published;
#[path = "formats/read_back.rs"]
mod read_back;
#[path = "formats/refused.rs"]
mod refused;
