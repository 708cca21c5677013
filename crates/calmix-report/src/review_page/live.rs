//! What a page needs to learn from its answers: the vectors of the pool, and the program that fits the head to them.
//!
//! The program is `calmix-live` as WebAssembly, written by `cargo xtask wasm`. The policy allows it, which is not `eval`, and a worker
//! from the page itself.

use base64::prelude::{BASE64_STANDARD, Engine};
use maud::{Markup, PreEscaped, html};
use serde::Serialize;

pub(super) const SCRIPT: &str = include_str!("live.js");

const WORKER: &str = include_str!("live_worker.js");

const PROGRAM: &[u8] = include_bytes!("live.wasm");

/// What the content security policy of such a page allows after the script of every page. A test computes the digest.
pub(super) const SOURCES: &str =
    " 'sha256-WvisfozpWtLsazZzL+uqtjAy3XLbs9b9AQJdgesagDs=' 'wasm-unsafe-eval'; worker-src blob:";

/// The pool that the head is fitted to.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LivePool<'a> {
    /// The ids of the samples, ascending.
    pub ids: &'a [u64],
    /// The numbers of a vector.
    pub width: usize,
    /// A vector per sample, one after the other.
    #[serde(skip)]
    pub vectors: &'a [f32],
    /// The labels of the data: the row of the vector, the index of the class in those of the page, and whether the label was chosen.
    pub labels: &'a [(usize, u32, bool)],
    /// `network.folds`.
    pub folds: usize,
    /// The halves of the seed of training, the lower first: a number of JavaScript cannot hold both.
    pub seed: [u32; 2],
}

impl LivePool<'_> {
    /// Returns the blocks that the page carries: the scripts, and numbers in base64.
    pub(super) fn blocks(&self) -> Markup {
        let bytes: Vec<u8> = self.vectors.iter().flat_map(|number| number.to_le_bytes()).collect();
        html! {
            script { (PreEscaped(SCRIPT)) }
            script type="text/plain" id="worker" { (PreEscaped(WORKER)) }
            script type="text/plain" id="program" { (PreEscaped(BASE64_STANDARD.encode(PROGRAM))) }
            script type="text/plain" id="vectors" { (PreEscaped(BASE64_STANDARD.encode(bytes))) }
        }
    }
}
