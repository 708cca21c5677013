//! Options that several commands share.

pub mod data;
pub mod labelled;
pub mod process;
pub mod recipe;
pub mod source;
