//! The commands that fit guarantees to labels, and watch them.

pub(super) mod calibrate;
pub(super) mod guard;
pub(super) mod monitor;
