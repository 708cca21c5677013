//! Which library of ONNX Runtime is loaded: both versions that are supported, and none that another user could have planted.
//!
//! A process loads one library, so each case runs in a process of its own.

mod cached;
mod child;
mod planted;
mod versions;
