//! What a page needs to show the bound of an audit while it is answered.

use serde::Serialize;

pub(super) const SCRIPT: &str = include_str!("audit.js");

/// The digest of the script in the policy. A test computes it.
pub(super) const SOURCE: &str = "'sha256-B5IwVQwCPH/mwqqZWodppSvV6MuYrzVUFEUJIYwHVmU='";

/// An audit up to the rows of a page.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AuditSoFar<'a> {
    /// At most this share of the labels may be wrong.
    pub limit: f64,
    /// The probability with which a certificate may be false.
    pub delta: f64,
    /// The number of rows of each share, increasing.
    pub shares: &'a [u64],
    /// The random order up to the last row of the page: the rank of each row, and whether its label is wrong, if it is answered already.
    pub order: &'a [(u64, Option<bool>)],
    /// For each row of the page its place in the order.
    pub places: &'a [usize],
    /// For each row of the page the SHA-256 of the page's storage key, the row's file and the label that is audited, with line feeds
    /// between. The page compares answers with it, and has no prediction that an auditor could see.
    pub labels: &'a [String],
}
