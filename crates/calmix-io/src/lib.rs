//! Safe file access for all calmix crates: files are written atomically, errors name the file, and untrusted names do no
//! harm. Also reads the variables of launchers, because no other crate independent of libtorch has a place for them.
//!
//! | question | module |
//! |---|---|
//! | how is a file written atomically? | [`atomic_file`] |
//! | which calls change a disk, and what if the storage is temporarily unavailable? | [`disk`], by [`transient`] |
//! | what is wrong with a file, and what to do next? | [`error`] |
//! | which folder must a path not leave? | [`confined_path`] |
//! | which paths from outside are safe? | [`safe_path`] |
//! | how is a file in an untrusted folder opened, and is it nearly all holes? | [`safe_open`] |
//! | how does only one process write to a folder? | [`lock`] |
//! | what differs between operating systems? | [`system`] |
//! | where does a folder grow until it is complete? | [`scratch_folder`] |
//! | which process of a job is this, and what may it use? | [`process`] |
//! | how are messages of TensorBoard and ONNX written and read? | [`protobuf`] |
//! | how many classes may a file name, and how long are their names? | [`class_names`] |
//! | how are names from outside, paths in a table and shell commands shown? | [`shown`] |
//! | how does a URL appear in a message? | [`redacted`] |
//! | how are counts formatted, and long lines broken? | [`text`] |
#![forbid(unsafe_code)]

pub mod atomic_file;
pub mod class_names;
pub mod confined_path;
pub mod disk;
pub mod error;
pub mod lock;
pub mod process;
pub mod protobuf;
pub mod redacted;
pub mod safe_open;
pub mod safe_path;
pub mod scratch_folder;
pub mod shown;
pub mod system;
pub mod text;
pub mod transient;
