//! Quotes paths for the shell commands that messages suggest.

use std::path::Path;

use crate::shown::is_command;

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
    fn paths_are_words_of_a_shell() {
        let name = |text| shell_quoted(Path::new(text));
        assert_eq!(
            [name("runs/a-1"), name("my photos"), name("it's")],
            ["runs/a-1", "'my photos'", r"'it'\''s'"]
        );
        assert_eq!(name("a\u{1b}'b\n"), r"$'a\x1b\'b\x0a'");
    }
}
