//! The commands of a block of shell code.

/// A command, which may take several lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellCommand {
    /// Its first line in the block, from 0, and the one after its last.
    pub(super) lines: std::ops::Range<usize>,
    pub(super) text: String,
}

/// The commands of a block: lines that end with a backslash continue, and loops end with `done`.
pub(super) fn commands(block: &str) -> Vec<ShellCommand> {
    let mut found = Vec::new();
    let mut open: Option<ShellCommand> = None;
    for (index, line) in block.lines().enumerate() {
        let trimmed = line.trim();
        if open.is_none() && (trimmed.is_empty() || trimmed.starts_with('#')) {
            continue;
        }
        let mut command = open.take().unwrap_or(ShellCommand { lines: index..index, text: String::new() });
        command.text.push_str(line);
        command.text.push('\n');
        command.lines.end = index + 1;
        let is_loop = command.text.starts_with("for ") || command.text.starts_with("while ");
        let is_open = trimmed.ends_with('\\') || (is_loop && !trimmed.ends_with("done"));
        if is_open {
            open = Some(command);
        } else {
            found.push(command);
        }
    }
    found.extend(open);
    found
}

/// The block without the lines of these commands, which become empty: a line keeps its number.
pub(super) fn without(block: &str, left_out: &[ShellCommand]) -> String {
    let mut text = String::new();
    for (index, line) in block.lines().enumerate() {
        if !left_out.iter().any(|command| command.lines.contains(&index)) {
            text.push_str(line);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str =
        "# first\ncalmix a \\\n    --b\n\nfor x in 1 2; do\n    calmix $x\ndone\nls  # all\n";

    #[test]
    fn commands_take_several_lines() {
        let found = commands(SAMPLE);
        let lines: Vec<_> = found.iter().map(|command| command.lines.clone()).collect();
        assert_eq!(lines, [1..3, 4..7, 7..8]);
        assert!(found[0].text.ends_with("--b\n"));
    }

    #[test]
    fn left_out_command_keeps_line_numbers() {
        let found = commands(SAMPLE);
        let kept = without(SAMPLE, &found[..2]);
        assert_eq!(kept, "# first\n\n\n\n\n\n\nls  # all\n");
    }
}
