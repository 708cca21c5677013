//! Names from outside stay inside the folder they belong to.

/// Why `name` may not be used as a path below a folder; none if it may.
///
/// Allowed is a relative path of plain names joined by `/`, on every system the same: what is a drive on one
/// must not be a file on another.
pub(super) fn trick(name: &str) -> Option<&'static str> {
    const LONGEST: usize = 4_096;
    if name.is_empty() {
        Some("is empty")
    } else if name.len() > LONGEST {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_names_pass() {
        for fine in ["a.jpg", "cat/a.jpg", "cat/.../a.jpg", "ä/ö.png", "a..b.jpg"] {
            assert_eq!(trick(fine), None, "{fine}");
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
            assert!(trick(bad).is_some(), "{bad}");
        }
    }
}
