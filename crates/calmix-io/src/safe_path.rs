//! Checks that untrusted names and files stay below their folder.

use std::fs;
use std::path::Path;

use crate::error::FileError;
use crate::system;

/// Checks that `path` is a regular file below `root` after links are resolved.
///
/// # Errors
/// If it is not: a link could expose files outside the dataset, and reading a pipe could block forever.
pub fn check(root: &Path, path: &Path) -> Result<(), FileError> {
    let real = |path: &Path| fs::canonicalize(path).map_err(|error| FileError::new(path, error));
    let found = real(path)?;
    if !found.starts_with(real(root)?) {
        let problem = "a link that leads out of the dataset folder";
        return Err(FileError::content(path, problem).hint("replace the link with a copy of its target"));
    }
    if !fs::metadata(&found).map_err(|error| FileError::new(path, error))?.is_file() {
        return Err(FileError::content(path, "not a regular file"));
    }
    Ok(())
}

/// The maximum length of a path, in bytes.
pub const MAX_PATH_BYTES: usize = 4_096;

/// Returns why `name` is not safe as a path below a folder; `None` if it is safe.
///
/// A safe path is relative and joins plain names by `/`. The rule is the same on every system, because a file name on one
/// system can be a drive on another.
pub fn why_unsafe(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("is empty")
    } else if name.len() > MAX_PATH_BYTES {
        Some("is longer than 4,096 bytes")
    } else if name.contains('\0') {
        Some("contains a NUL")
    } else if name.contains('\\') {
        Some("contains a backslash where / is meant")
    } else if name.starts_with('/') {
        Some("is absolute")
    } else if name.as_bytes().get(1) == Some(&b':') {
        Some("begins with a drive")
    } else if name.split('/').any(|part| part == "..") {
        Some("leads out of the folder")
    } else if name.split('/').any(|part| part.is_empty() || part == ".") {
        Some("has an empty part")
    } else {
        None
    }
}

/// Returns why `name` is not safe as a path below a folder, or cannot be one on this system; `None` if a file can have it.
///
/// For files that are opened here: Windows opens a device or a stream of another file by names that are plain elsewhere.
pub fn why_unsafe_here(name: &str) -> Option<&'static str> {
    why_unsafe(name).or_else(|| name.split('/').find_map(|part| system::why_impossible(part.as_ref())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_are_plain_except_on_windows() {
        for name in ["cat/CON.png", "NUL/a.jpg", "cat/a:b.png", "cat/end."] {
            assert_eq!(why_unsafe(name), None, "{name}");
            assert_eq!(why_unsafe_here(name).is_some(), cfg!(windows), "{name}");
        }
        assert_eq!(why_unsafe_here("cat/a.jpg"), None);
        assert!(why_unsafe_here("../a").is_some());
    }

    #[test]
    fn only_plain_relative_names_pass() {
        for fine in ["a.jpg", "cat/a.jpg", "cat/.../a.jpg", "ä/ö.png", "a..b.jpg"] {
            assert_eq!(why_unsafe(fine), None, "{fine}");
        }
        let long = "a/".repeat(3_000);
        for bad in [
            "",
            "../a",
            "a/../../b",
            "/etc/passwd",
            "C:/a",
            "C:\\a",
            "a\\b",
            "a\0b",
            "a//b",
            "./a",
            "a/",
            &long,
        ] {
            assert!(why_unsafe(bad).is_some(), "{bad}");
        }
    }
}
