//! What a run tells, from the event to the bytes of every sink.
// Clippy spares functions marked as tests, not those that make runs for them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod folder;
mod lines;
mod made;
mod predictions;
mod progress;
mod tensorboard;
