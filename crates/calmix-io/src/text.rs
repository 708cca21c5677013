//! Formats the text of messages: counts (`1 class`, `2,000 steps`) and line breaks.

/// The maximum length of a printed line, in characters, except for commands to copy and single long words.
pub const MAX_LINE_WIDTH: usize = 100;

/// Formats a number with thousands separators: 1,048,576.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a count with its noun, putting the last word in the plural: `3 training labels`.
pub fn counted(number: u64, noun: &str) -> String {
    let hisses = ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end));
    let plural = match number {
        1 => "",
        _ if hisses => "es",
        _ => "s",
    };
    format!("{} {noun}{plural}", grouped(number))
}

/// Formats a count of samples with the number of their groups, if any: "38 labels in 21 groups".
pub fn counted_in_groups(number: u64, noun: &str, groups: Option<u64>) -> String {
    let samples = counted(number, noun);
    match groups {
        Some(groups) => format!("{samples} in {}", counted(groups, "group")),
        None => samples,
    }
}

/// Breaks a line at spaces. The first line starts in column `begin`, the continuation lines in column `indent`.
pub fn wrapped(line: &str, begin: usize, indent: usize) -> String {
    wrapped_to(MAX_LINE_WIDTH, line, begin, indent)
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
    fn one_is_singular_and_thousands_are_apart() {
        assert_eq!([0, 999, 1000, 1_048_576].map(grouped), ["0", "999", "1,000", "1,048,576"]);
        assert_eq!([counted(1, "step"), counted(2000, "step")], ["1 step", "2,000 steps"]);
        assert_eq!(
            [counted(1, "class"), counted(0, "class"), counted(2, "batch")],
            ["1 class", "0 classes", "2 batches"]
        );
        assert_eq!(counted(2, "process"), "2 processes");
    }

    #[test]
    fn long_lines_are_broken_and_indented() {
        let line = "word ".repeat(30);
        let broken = wrapped(line.trim_end(), 90, 4);
        let lines: Vec<&str> = broken.lines().collect();
        assert_eq!(lines[0], "word word");
        assert!(lines[1..].iter().all(|line| line.starts_with("    word") && line.len() <= MAX_LINE_WIDTH));
        assert_eq!(broken.split_whitespace().count(), 30);
        assert_eq!(wrapped("short", 0, 4), "short");
        assert_eq!(wrapped_to(9, "word word word", 0, 2), "word word\n  word");
    }
}
