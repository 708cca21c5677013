//! The commands that train a network, or look at this machine for it, one file each. Their arguments are in the library of calmix.

pub(crate) mod doctor;
pub(crate) mod evaluate;
pub(crate) mod resume;
pub(crate) mod sweep;
pub(crate) mod train;
