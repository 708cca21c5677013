//! The binary sources: every pixel in its place, the published datasets whole, and hostile files.

mod golden;
mod hostile;
mod published;
mod read_back;
mod refused;
