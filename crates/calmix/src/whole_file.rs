//! Writes a file that appears as a whole, or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use calmix::core::shown::shown;

/// Writes a file under a hidden name beside its own, which readers of the folder pass over, and renames it. A link in its
/// place is replaced, not followed.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let cannot = || format!("cannot write {}", shown(path.display()));
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    let scratch = path.with_file_name(name);
    // Of a process that was killed.
    let _ = fs::remove_file(&scratch);
    let mut file = File::options().write(true).create_new(true).open(&scratch).with_context(cannot)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let renamed = written.and_then(|()| fs::rename(&scratch, path));
    renamed.inspect_err(|_| drop(fs::remove_file(&scratch))).with_context(cannot)
}
