//! What a run tells, from the event to the bytes of every sink.
#![allow(missing_docs)]

mod lines;
mod made;
mod predictions;
mod progress;
mod tensorboard;
