//! What every crate that reads and writes files needs: they appear as a whole, an error names the file, and a name from
//! outside does no harm.
//!
//! | question | module |
//! |---|---|
//! | how does a file appear as a whole or not at all? | [`atomic_file`] |
//! | which calls change a disk, and what if the storage is away for a while? | [`disk`], by [`transient`] |
//! | what is wrong with a file, and what to try next? | [`error`] |
//! | which folder must a path not leave? | [`confined_path`] |
//! | which paths from outside are safe? | [`safe_path`] |
//! | how is a file in a folder opened that came from somebody else? | [`safe_open`] |
//! | which process alone may write into a folder? | [`lock`] |
//! | is a file nothing but holes? | [`sparse_file`] |
//! | how many classes may a file name? | [`class_names`] |
//! | how are names from outside and counts shown? | [`shown`], [`counted`] |
#![forbid(unsafe_code)]

pub mod atomic_file;
pub mod class_names;
pub mod confined_path;
pub mod counted;
pub mod disk;
pub mod error;
pub mod lock;
pub mod safe_open;
pub mod safe_path;
pub mod shell_quoted;
pub mod shown;
pub mod sparse_file;
pub mod transient;
