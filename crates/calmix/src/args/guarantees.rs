//! The arguments of the commands that fit guarantees to labels.

pub mod calibrate;
pub mod guard;
