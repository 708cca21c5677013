//! The head of a page of `calmix review --live`, fitted in the browser: from vectors and the labels so far to predictions.
//!
//! A page cannot run a process, so `main.rs` is compiled to WebAssembly for WASI: it reads a [`request`] from its input and writes an
//! [`answer`] to its output, and needs no other function of a system. [`refit`](refit::refit) is the fit of `calmix train`
//! on one vector per sample, in the same code; only sums of products may round otherwise, as there is no fused multiply-add.
#![forbid(unsafe_code)]

pub mod answer;
pub mod refit;
pub mod request;
