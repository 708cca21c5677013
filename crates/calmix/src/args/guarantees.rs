//! The arguments of the commands that fit guarantees to labels, and watch them.

pub mod calibrate;
pub mod guard;
pub mod monitor;
