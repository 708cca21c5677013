//! Options that several commands share.

pub mod data;
pub mod recipe;
pub mod source;
