//! The commands that need libtorch, one file each. Their arguments are in the library of calmix.

pub(crate) mod calibrate;
pub(crate) mod doctor;
pub(crate) mod evaluate;
pub(crate) mod export;
mod features;
pub(crate) mod predict;
pub(crate) mod resume;
pub(crate) mod sweep;
pub(crate) mod train;
