//! The libraries that `cargo xtask setup` put into the cache.

use std::path::PathBuf;
use std::{env, fs};

/// The library of a version, if the cache has it.
pub(crate) fn library(version: &str) -> Option<PathBuf> {
    let named = env::var_os("CALMIX_CACHE").filter(|name| !name.is_empty()).map(PathBuf::from);
    let xdg = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let cache = named.or_else(|| Some(xdg?.join("calmix")));
    let cache = cache.or_else(|| Some(env::home_dir()?.join(".cache").join("calmix")))?;
    let entries = fs::read_dir(cache.join("onnxruntime").join(version)).ok()?;
    let mut files = entries.flatten().map(|entry| entry.path());
    files.find(|file| file.file_name().unwrap_or_default().to_string_lossy().starts_with("libonnxruntime."))
}
