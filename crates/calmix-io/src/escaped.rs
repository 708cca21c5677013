//! Names of files as text on one line, reversibly: the form in which `calmix predict` writes paths.

use std::fmt::Write as _;

use crate::shown::is_command;

/// Escapes bytes reversibly as text on one line: bytes that are not UTF-8, control characters and the backslash are written
/// `\xNN`.
///
/// ```
/// use calmix_io::escaped::escaped;
///
/// assert_eq!(escaped(b"a\n\\\xff.png"), r"a\x0a\x5c\xff.png");
/// ```
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let hexadecimal = |bytes: &[u8], text: &mut String| {
        for byte in bytes {
            // Writing to a string does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' || is_command(c) {
                hexadecimal(c.to_string().as_bytes(), &mut text);
            } else {
                text.push(c);
            }
        }
        hexadecimal(chunk.invalid(), &mut text);
    }
    text
}
