//! Which library of ONNX Runtime is loaded: both versions that are supported, and none that another user could have planted.
//!
//! A process loads one library, so each case runs in a process of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "library/cached.rs"]
mod cached;
#[path = "library/child.rs"]
mod child;
#[path = "library/planted.rs"]
mod planted;
#[path = "library/versions.rs"]
mod versions;
