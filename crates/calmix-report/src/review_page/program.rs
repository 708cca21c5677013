//! The program in a page: `calmix-live` as WebAssembly, written by `cargo xtask wasm`, for what no script should compute a second time.
//!
//! The policy of such a page allows WebAssembly, which is not `eval`, and a worker from the page itself.

use base64::prelude::{BASE64_STANDARD, Engine};
use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use super::audit::{self, AuditSoFar};
use super::live::{self, LivePool};

pub(super) const SCRIPT: &str = include_str!("program.js");

const WORKER: &str = include_str!("worker.js");

const PROGRAM: &[u8] = include_bytes!("live.wasm");

/// What the content security policy allows after the script of every page. A test computes the digest.
const SOURCES: &str = " 'sha256-cGOurz8VAjS59GCSq+uP+4wzZS77JD3otlgt4jYRbN0='";

/// What a page computes.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Program<'a> {
    /// Fits the head to its answers: the page of `calmix review --live`.
    Live(LivePool<'a>),
    /// Tests the shares of a pool: the page of an audit.
    Audit(AuditSoFar<'a>),
}

impl Program<'_> {
    pub(super) fn sources(&self) -> String {
        format!("{SOURCES} {} 'wasm-unsafe-eval'; worker-src blob:", self.source())
    }

    /// The digest of the script of this page alone.
    fn source(&self) -> &'static str {
        match self {
            Self::Live(_) => live::SOURCE,
            Self::Audit(_) => audit::SOURCE,
        }
    }

    /// Returns the blocks that the page carries: the scripts, and numbers in base64.
    pub(super) fn blocks(&self) -> Markup {
        let (script, vectors) = match self {
            Self::Live(pool) => (live::SCRIPT, Some(pool.bytes())),
            Self::Audit(_) => (audit::SCRIPT, None),
        };
        html! {
            script { (PreEscaped(SCRIPT)) }
            script { (PreEscaped(script)) }
            script type="text/plain" id="worker" { (PreEscaped(WORKER)) }
            script type="text/plain" id="program" { (PreEscaped(BASE64_STANDARD.encode(PROGRAM))) }
            @if let Some(vectors) = vectors {
                script type="text/plain" id="vectors" { (PreEscaped(BASE64_STANDARD.encode(vectors))) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ring::digest::{SHA256, digest};

    use super::*;

    #[test]
    fn policies_name_the_digests_of_the_scripts() {
        for (script, sources) in
            [(SCRIPT, SOURCES), (live::SCRIPT, live::SOURCE), (audit::SCRIPT, audit::SOURCE)]
        {
            let source = format!("'sha256-{}'", BASE64_STANDARD.encode(digest(&SHA256, script.as_bytes())));
            assert_eq!(sources.trim(), source, "write the right one");
        }
    }
}
