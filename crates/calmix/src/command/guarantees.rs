//! The commands that fit guarantees to labels.

pub(super) mod calibrate;
pub(super) mod guard;
