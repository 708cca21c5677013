//! Escapes untrusted names and texts, so that no control character reaches a terminal.
//!
//! The name of a file or a class may contain terminal control sequences that move the cursor, change the title, or disguise
//! a line as another. They are escaped, as `\u{1b}`.

use std::ffi::OsStr;
use std::fmt::{Display, Write as _};
use std::path::Path;

use crate::system;

/// Formats a name or path on one line, escaping control characters and marks that reorder text.
///
/// ```
/// use calmix_io::shown::shown;
///
/// assert_eq!(shown("Bücher/cat.png"), "Bücher/cat.png");
/// assert_eq!(shown("cat\u{1b}[2J\n.png"), r"cat\u{1b}[2J\n.png");
/// ```
pub fn shown(name: impl Display) -> String {
    escaped_except(&name.to_string(), |_| false)
}

/// Escapes a text of several lines in the same way, but keeps its line breaks.
pub fn shown_lines(text: &str) -> String {
    escaped_except(text, |c| c == '\n')
}

/// Returns whether a character can control the terminal that shows it.
pub fn is_command(c: char) -> bool {
    // Besides control characters: line and paragraph separators, and the marks of bidirectional text.
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped_except(text: &str, kept: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_command(c) && !kept(c) {
            // Writing to a string does not fail.
            let _ = write!(shown, "{}", c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Escapes bytes reversibly as text on one line, as `calmix predict` writes paths: invalid UTF-8, control characters and
/// backslashes become `\xNN`.
///
/// ```
/// use calmix_io::shown::escaped;
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

/// Escapes a path in the same way, with slashes between its names on every system.
pub fn escaped_path(path: impl AsRef<OsStr>) -> String {
    escaped(&system::path_bytes(path.as_ref()))
}

/// Quotes a path as one word of a shell command, if necessary.
pub fn shell_quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@\\".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else if text.chars().any(is_command) {
        // Bash and zsh support escapes in `$'…'`.
        let byte = |byte: u8| format!("\\x{byte:02x}");
        let quoted = text.chars().map(|c| match c {
            '\'' | '\\' => format!("\\{c}"),
            c if is_command(c) => c.to_string().bytes().map(byte).collect::<Vec<_>>().concat(),
            c => c.to_string(),
        });
        format!("$'{}'", quoted.collect::<Vec<_>>().concat())
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_written_out_and_everything_else_stays() {
        assert_eq!(shown("a\tb\r\u{7f}\u{9b}31m"), r"a\tb\r\u{7f}\u{9b}31m");
        assert_eq!(shown("gpj.\u{202e}exe"), r"gpj.\u{202e}exe");
        assert_eq!(shown_lines("one\ntwo\u{1b}]0;x\u{7}"), "one\ntwo\\u{1b}]0;x\\u{7}");
        let plain = "Größe 猫 ½ \\ ' \" 👍";
        assert_eq!((shown(plain), shown_lines(plain)), (plain.to_owned(), plain.to_owned()));
    }

    #[test]
    fn paths_are_words_of_a_shell() {
        let name = |text| shell_quoted(Path::new(text));
        assert_eq!(
            [name("runs/a-1"), name("my photos"), name("it's")],
            ["runs/a-1", "'my photos'", r"'it'\''s'"]
        );
        assert_eq!(name("a\u{1b}'b\n"), r"$'a\x1b\'b\x0a'");
    }
}
