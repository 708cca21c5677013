//! What a page of `calmix review --live` or of an audit computes in the browser: the head from vectors and the labels so far, or what the
//! answers of an audit show.
//!
//! A page cannot run a process, so `main.rs` is compiled to WebAssembly for WASI: it reads a request from its input and writes an
//! answer to its output, and needs no other function of a system. [`refit`](refit::refit) is the fit of `calmix train`
//! on one vector per sample, and [`audit`] the test of `calmix certify`, in the same code; only sums of products may round
//! otherwise, as there is no fused multiply-add.
#![forbid(unsafe_code)]

pub mod answer;
pub mod audit;
pub mod refit;
pub mod request;

use audit::Audit;
use refit::refit;
use request::Request;

/// The first number of a request for a fit.
const FIT: u32 = 0;
/// The first number of a request for what an audit shows.
const AUDIT: u32 = 1;

/// Answers a request, whose first `u32` says what it asks for.
///
/// # Errors
/// If the request contradicts itself, or cannot be fulfilled.
pub fn respond(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let Some((kind, rest)) = bytes.split_first_chunk() else {
        return Err("the request is empty".to_owned());
    };
    match u32::from_le_bytes(*kind) {
        FIT => Ok(refit(&Request::read(rest)?)?.bytes()),
        AUDIT => Audit::read(rest)?.answer(),
        other => Err(format!("there are no requests of kind {other}")),
    }
}
