//! The files of a prepared dataset, verified against their hashes.

use std::path::Path;

use calmix_formats::error::FormatProblem;
use calmix_formats::read_at::ReadAt;
use serde::Deserialize;

use crate::error::DataError;
use crate::manifest::{DRAWN_FILE, GROUPS_FILE, Header, WEIGHTS_FILE, check_version};

/// Enough for a million classes.
const MAX_MANIFEST_BYTES: u64 = 16 << 20;

/// The hint for a file that differs from the prepared one.
pub(super) const AGAIN: &str = "prepare the dataset again";

pub(super) fn read_header(prepared: &Path) -> Result<Header, DataError> {
    let file = ReadAt::open(prepared, "manifest.json")?;
    if file.length() > MAX_MANIFEST_BYTES {
        let problem = format!("{} bytes, expected at most {MAX_MANIFEST_BYTES}", file.length());
        return Err(DataError::limit(file.path(), problem));
    }
    let mut bytes = vec![0; file.length() as usize];
    file.read(&mut bytes, 0)?;
    let bad = |problem| DataError::new(file.path(), problem).hint(AGAIN);
    let parse = |error: serde_json::Error| bad(FormatProblem::Format(error.to_string()));
    let Versioned { version } = serde_json::from_slice(&bytes).map_err(parse)?;
    check_version(version).map_err(bad)?;
    let header: Header = serde_json::from_slice(&bytes).map_err(parse)?;
    header.check().map_err(bad)?;
    Ok(header)
}

/// Opens and verifies the table of groups; `None` if there are no groups.
pub(super) fn open_groups(prepared: &Path, header: &Header) -> Result<Option<ReadAt>, DataError> {
    if header.groups.is_none() {
        return Ok(None);
    }
    let file = ReadAt::open(prepared, GROUPS_FILE)?;
    match header.samples.checked_mul(4) {
        Some(expected) if expected == file.length() => {}
        expected => return Err(wrong_length(&file, expected.unwrap_or(u64::MAX))),
    }
    check_hash(&file, &header.tables.groups)?;
    Ok(Some(file))
}

/// Opens and verifies the table of draws; `None` if it is not known how any label was drawn.
pub(super) fn open_drawn(prepared: &Path, header: &Header) -> Result<Option<ReadAt>, DataError> {
    if header.tables.drawn.is_empty() {
        return Ok(None);
    }
    let file = ReadAt::open(prepared, DRAWN_FILE)?;
    if file.length() != header.samples {
        return Err(wrong_length(&file, header.samples));
    }
    check_hash(&file, &header.tables.drawn)?;
    Ok(Some(file))
}

/// Opens and verifies the table of weights; `None` if every label has the weight 1.
pub(super) fn open_weights(prepared: &Path, header: &Header) -> Result<Option<ReadAt>, DataError> {
    if header.tables.weights.is_empty() {
        return Ok(None);
    }
    let file = ReadAt::open(prepared, WEIGHTS_FILE)?;
    match header.samples.checked_mul(8) {
        Some(expected) if expected == file.length() => {}
        expected => return Err(wrong_length(&file, expected.unwrap_or(u64::MAX))),
    }
    check_hash(&file, &header.tables.weights)?;
    Ok(Some(file))
}

/// The version field, which every format has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Refuses a table with another hash than the prepared one, in constant memory.
pub(super) fn check_hash(file: &ReadAt, expected: &str) -> Result<(), DataError> {
    /// Long enough for the hash to use full vector width, short enough for the CPU cache.
    const PIECE: u64 = 256 << 10;
    let mut hasher = blake3::Hasher::new();
    let mut piece = Vec::new();
    for at in (0..file.length()).step_by(PIECE as usize) {
        piece.resize(PIECE.min(file.length() - at) as usize, 0);
        file.read(&mut piece, at)?;
        hasher.update(&piece);
    }
    if hasher.finalize().to_hex().as_str() == expected {
        return Ok(());
    }
    let problem = "the file has changed since it was prepared: manifest.json has another hash";
    Err(DataError::changed(file.path(), problem).hint(AGAIN))
}

pub(super) fn wrong_length(file: &ReadAt, expected: u64) -> DataError {
    DataError::format(file.path(), format!("{} bytes, expected {expected}", file.length())).hint(AGAIN)
}
