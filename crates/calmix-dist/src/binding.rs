//! libtorch's c10d as Rust: stores and process groups as owned values, C++ exceptions as errors.
//!
//! The only `unsafe` of the project. The C++ half is `shim/c10d.cpp`; `shim/c10d.h` documents each function.
#![allow(unsafe_code)]

mod ffi;
mod gpu;
mod group;
mod store;
mod watch;

use std::ffi::{CString, c_char};
use std::time::Duration;

pub(crate) use gpu::{compute_capability, gpu_flags, set_gpu_flags};
pub(crate) use group::C10dGroup;
pub(crate) use store::Store;
pub(crate) use watch::PeerWatch;

/// An exception of c10d.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct C10dError {
    /// A store's timeout passed; the connection is intact.
    pub(crate) timed_out: bool,
    /// The first line of its message.
    pub(crate) message: String,
}

impl C10dError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { timed_out: false, message: message.into() }
    }
}

/// Calls a function of the shim with a buffer for its error message.
fn call(function: impl FnOnce(ffi::ErrorBuffer) -> i32) -> Result<(), C10dError> {
    let mut text = [0_u8; 1024];
    let code = function(ffi::ErrorBuffer { text: text.as_mut_ptr().cast::<c_char>(), capacity: text.len() });
    if code == ffi::DONE {
        return Ok(());
    }
    let message = text_of(&text);
    let message = message.lines().next().unwrap_or_default().trim().to_owned();
    Err(C10dError { timed_out: code == ffi::TIMED_OUT, message })
}

/// The text before the final zero.
fn text_of(bytes: &[u8]) -> String {
    let written = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(written).into_owned()
}

fn c_string(text: &str) -> Result<CString, C10dError> {
    CString::new(text).map_err(|_| C10dError::new(format!("{text:?} has a zero byte")))
}

fn milliseconds(duration: Duration) -> i64 {
    // c10d passes it to poll(), which takes 32 bits.
    duration.as_millis().clamp(1, i32::MAX as u128) as i64
}
