//! `certificate.json`.

use std::path::Path;

use anyhow::Result;
use calmix_io::safe_open;
use calmix_io::shown::shown;
use serde::{Deserialize, Serialize};

use super::answers::LoggedAnswer;
use super::digest::{DIGITS, is_sha256, sha256};
use super::plan::AuditPlan;
use super::result::AuditResult;
use crate::error::CliError;

/// The name of the file.
pub(crate) const CERTIFICATE: &str = "certificate.json";
/// The version of the format.
const FORMAT: &str = "calmix certificate 1";
/// The largest file: a hundred thousand answers with long names.
const MAX_BYTES: u64 = 64 << 20;

/// The certificate, with its fields in the order of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Certificate {
    pub(crate) format: String,
    /// SHA-256 of this file with the digits of this field replaced by zeros.
    pub(crate) hash: String,
    pub(crate) claims: Vec<String>,
    pub(crate) pool: PoolSummary,
    pub(crate) model: ModelName,
    pub(crate) created: String,
    /// SHA-256 of `labels.csv`.
    pub(crate) labels_sha256: String,
    pub(crate) plan: AuditPlan,
    pub(crate) result: AuditResult,
    pub(crate) answers: Vec<LoggedAnswer>,
}

/// What was labelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PoolSummary {
    pub(crate) kind: PoolKind,
    pub(crate) rows: u64,
    /// SHA-256 of the ids and contents of all rows.
    pub(crate) fingerprint: String,
}

/// The kind of the samples of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PoolKind {
    Images,
    Vectors,
}

impl PoolKind {
    /// Returns the plural.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Images => "images",
            Self::Vectors => "vectors",
        }
    }
}

/// The model that labelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelName {
    /// The name of the run's folder.
    pub(crate) run: String,
    /// The hash of its weights.
    pub(crate) blake3: String,
    /// The version of calmix.
    pub(crate) calmix: String,
}

impl Certificate {
    /// Returns the format of new certificates.
    pub(crate) fn format() -> String {
        FORMAT.to_owned()
    }

    /// Computes the hash of the certificate; returns the bytes of the file.
    pub(crate) fn seal(&mut self) -> Result<Vec<u8>> {
        self.hash = "0".repeat(DIGITS);
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        self.hash = sha256(text.as_bytes());
        // Only the field itself has these zeros: no hash is zero.
        Ok(text.replacen(&"0".repeat(DIGITS), &self.hash, 1).into_bytes())
    }

    /// Reads a certificate; returns it with whether its hash is right.
    ///
    /// # Errors
    /// If the file is not a certificate of this version.
    pub(crate) fn read(path: &Path) -> Result<(Self, bool)> {
        let text = safe_open::read_text(path, MAX_BYTES)?;
        let place = shown(path.display());
        let read: Self = serde_json::from_str(&text).map_err(|error| {
            let hint =
                "take the certificate.json that calmix wrote; docs/reference/certificate.md describes it";
            CliError::invalid(format!("{place}: not a certificate: {error}")).hint(hint)
        })?;
        if read.format != FORMAT {
            let message = format!("{place}: its format is {}, expected {FORMAT}", shown(&read.format));
            return Err(CliError::invalid(message).hint("verify it with the calmix that wrote it").into());
        }
        let is_intact = is_sha256(&read.hash)
            && sha256(text.replace(&read.hash, &"0".repeat(DIGITS)).as_bytes()) == read.hash;
        Ok((read, is_intact))
    }
}
