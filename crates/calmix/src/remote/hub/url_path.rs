//! Names as parts of the path of a URL.

use std::fmt::Write;

/// Percent-encodes a name, slashes included.
pub(super) fn encoded(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Percent-encodes the names of a path and leaves the slashes between them.
pub(super) fn encoded_path(path: &str) -> String {
    path.split('/').map(encoded).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_characters_stay() {
        assert_eq!(encoded("refs/pr/1"), "refs%2Fpr%2F1");
        assert_eq!(encoded_path("onnx/model v1?.onnx"), "onnx/model%20v1%3F.onnx");
        assert_eq!(encoded("ä#%"), "%C3%A4%23%25");
    }
}
