//! What every crate that writes files needs: they appear as a whole, and an error names the file.
//!
//! | question | module |
//! |---|---|
//! | how does a file appear as a whole or not at all? | [`atomic_file`] |
//! | which calls change a disk, and what if the storage is away for a while? | [`disk`] |
//! | what is wrong with a file, and what to try next? | [`error`] |
//! | which folder must a path not leave? | [`confined_path`] |
//! | how is a file in a folder opened that came from somebody else? | [`safe_open`] |
//! | is a file nothing but holes? | [`sparse_file`] |
#![forbid(unsafe_code)]

pub mod atomic_file;
pub mod confined_path;
pub mod disk;
pub mod error;
pub mod safe_open;
pub mod sparse_file;
