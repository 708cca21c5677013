//! libtorch's c10d as Rust: stores and process groups as owned values, C++ exceptions as errors.
//!
//! The only `unsafe` of the project. The C++ half is `shim/c10d.cpp`; `shim/c10d.h` documents each function.
#![allow(unsafe_code)]

mod ffi;
pub mod gpu;
mod group;
mod store;

use std::ffi::{CString, c_char};
use std::time::Duration;

pub(crate) use group::{C10dGroup, PeerWatch};
pub(crate) use store::Store;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct C10dError {
    /// Whether a store's timeout passed; the connection is intact then.
    pub(crate) timed_out: bool,
    /// The first sentence of the exception's message.
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
    Err(C10dError { timed_out: code == ffi::TIMED_OUT, message: sentence(&text_of(&text)).to_owned() })
}

/// Returns the message of an exception, without the location in Gloo's source before it and the advice after it.
fn sentence(message: &str) -> &str {
    let line = message.lines().next().unwrap_or_default().trim();
    let place = line.strip_prefix('[').and_then(|line| line.split_once("] "));
    let text = place
        .filter(|(place, _)| place.contains(".cc:") || place.contains(".cpp:"))
        .map_or(line, |(_, text)| text);
    let ends = text.match_indices(". ").map(|(end, _)| end);
    let capital = |end: &usize| text[end + 2..].starts_with(|c: char| c.is_ascii_uppercase());
    let end = ends.into_iter().find(capital).unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// Returns the text before the terminating zero.
fn text_of(bytes: &[u8]) -> String {
    let written = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(written).into_owned()
}

fn c_string(text: &str) -> Result<CString, C10dError> {
    CString::new(text).map_err(|_| C10dError::new(format!("{text:?} contains a zero byte")))
}

fn milliseconds(duration: Duration) -> i64 {
    // c10d passes the milliseconds to poll(), which takes 32 bits.
    duration.as_millis().clamp(1, i32::MAX as u128) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_one_sentence() {
        for (message, expected) in [
            (
                "[/__w/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer \
                 [127.0.0.1]:12169. This is typically caused by a remote worker crashing. Check the logs of the remote \
                 worker before reporting an error. GLHF! 🏖️",
                "Connection closed by peer [127.0.0.1]:12169",
            ),
            (
                "[../gloo/transport/tcp/pair.cc:525] Read error [::1]:3456: Connection reset by peer",
                "Read error [::1]:3456: Connection reset by peer",
            ),
            (
                "wait timeout after 300ms, keys: /a\nException raised from doWait",
                "wait timeout after 300ms, keys: /a",
            ),
            ("[rank 3] has left, e.g. by 2. or so.", "[rank 3] has left, e.g. by 2. or so"),
            ("", ""),
        ] {
            assert_eq!(sentence(message), expected);
        }
    }
}
