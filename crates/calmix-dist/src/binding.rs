//! libtorch's c10d as Rust: stores and groups as owned values, C++ exceptions as errors.
//!
//! The only `unsafe` of the whole project. The other half is `shim/c10d.cpp`, and `shim/c10d.h` says what each function
//! promises.
#![allow(unsafe_code)]

mod foreign;
mod group;
mod store;

use std::ffi::{CString, c_char};
use std::time::Duration;

pub(crate) use group::Group;
pub(crate) use store::Store;

/// What c10d threw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thrown {
    /// A store waited as long as it was allowed to; the connection is fine.
    pub(crate) timed_out: bool,
    /// The first line of what it said.
    pub(crate) message: String,
}

impl Thrown {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { timed_out: false, message: message.into() }
    }
}

/// Calls a function of the shim with a place for the reason of a failure.
fn call(function: impl FnOnce(foreign::Said) -> i32) -> Result<(), Thrown> {
    let mut text = [0_u8; 1024];
    let code = function(foreign::Said { text: text.as_mut_ptr().cast::<c_char>(), room: text.len() });
    if code == foreign::DONE {
        return Ok(());
    }
    let message = text_of(&text);
    let message = message.lines().next().unwrap_or_default().trim().to_owned();
    Err(Thrown { timed_out: code == foreign::TIMED_OUT, message })
}

/// What C wrote up to its final zero.
fn text_of(bytes: &[u8]) -> String {
    let written = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(written).into_owned()
}

fn c_string(text: &str) -> Result<CString, Thrown> {
    CString::new(text).map_err(|_| Thrown::new(format!("{text:?} has a zero byte")))
}

fn milliseconds(duration: Duration) -> i64 {
    // c10d hands it to poll(), which counts in 32 bits.
    duration.as_millis().clamp(1, i32::MAX as u128) as i64
}
