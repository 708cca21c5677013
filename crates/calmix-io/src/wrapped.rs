//! Long lines, broken at spaces.

/// The longest line that calmix prints, in characters, unless it is a command to copy or one long word.
pub const LONGEST_LINE: usize = 100;

/// Breaks a line at spaces. The first line begins in the column `begin`, those that continue it in the column `indent`.
pub fn wrapped(line: &str, begin: usize, indent: usize) -> String {
    wrapped_to(LONGEST_LINE, line, begin, indent)
}

/// Breaks a line as [`wrapped`] does, into lines of at most `columns` characters.
pub fn wrapped_to(columns: usize, line: &str, begin: usize, indent: usize) -> String {
    let mut broken = String::new();
    let mut column = begin;
    for (place, word) in line.split(' ').enumerate() {
        let width = word.chars().count();
        if place > 0 && column + 1 + width > columns {
            broken.push('\n');
            broken.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if place > 0 {
            broken.push(' ');
            column += 1;
        }
        broken.push_str(word);
        column += width;
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_and_indented() {
        let line = "word ".repeat(30);
        let broken = wrapped(line.trim_end(), 90, 4);
        let lines: Vec<&str> = broken.lines().collect();
        assert_eq!(lines[0], "word word");
        assert!(lines[1..].iter().all(|line| line.starts_with("    word") && line.len() <= LONGEST_LINE));
        assert_eq!(broken.split_whitespace().count(), 30);
        assert_eq!(wrapped("short", 0, 4), "short");
        assert_eq!(wrapped_to(9, "word word word", 0, 2), "word word\n  word");
    }
}
