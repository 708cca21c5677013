//! What a run tells, from the event to the bytes of every sink.

mod folder;
mod lines;
mod made;
mod predictions;
mod progress;
mod tensorboard;
