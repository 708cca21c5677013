//! The lines of a CSV text as an editor counts them, and those that hold nothing: the crate `csv` skips them, although each may
//! stand for a row.

/// The number of empty lines at `place`, which is where a record ends, or 0.
///
/// A line that is ended by CR LF may end at either: the record before the empty lines ends at its CR.
pub fn blank_lines(text: &[u8], place: usize) -> u64 {
    let Some((before, mut rest)) = text.split_at_checked(place) else { return 0 };
    if before.ends_with(b"\r") {
        rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    }
    let mut lines = 0;
    while let Some(after) = [b"\r\n".as_slice(), b"\n", b"\r"].iter().find_map(|end| rest.strip_prefix(*end))
    {
        rest = after;
        lines += 1;
    }
    lines
}

/// The line of each place in a text; places have to ascend.
#[derive(Debug)]
pub struct LineCount<'a> {
    text: &'a [u8],
    place: usize,
    line: u64,
}

impl<'a> LineCount<'a> {
    /// Counts from the first line of a text.
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, place: 0, line: 1 }
    }

    /// The line of the first byte at or after `place` that is not a line ending: the position of a record of the crate
    /// `csv` includes the line endings before it.
    pub fn line_at(&mut self, place: usize) -> u64 {
        let ends_line = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let skipped = self.text.iter().skip(place).take_while(|byte| ends_line(byte)).count();
        let end = (place + skipped).min(self.text.len());
        while self.place < end {
            let is_pair = self.text[self.place..].starts_with(b"\r\n");
            self.line += u64::from(ends_line(&self.text[self.place]) && !is_pair);
            self.place += 1;
        }
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lines_of_every_system_are_counted() {
        for (text, lines) in [("a\n\n\nb", 2), ("a\r\n\r\n\r\nb", 2), ("a\r\r\rb", 2), ("a\nb", 0), ("a", 0)]
        {
            // Where the record `a` ends: after its CR or LF.
            let place = 2.min(text.len());
            assert_eq!(blank_lines(text.as_bytes(), place), lines, "{text:?}");
        }
        assert_eq!(blank_lines(b"a\r\n\r\n", 3), 1);
        assert_eq!(blank_lines(b"\n\na", 0), 2);
        assert_eq!(blank_lines(b"a", 9), 0);
    }

    #[test]
    fn lines_of_every_system_are_counted_once() {
        for text in ["a\nb\n\nc", "a\r\nb\r\n\r\nc", "a\rb\r\rc"] {
            let mut lines = LineCount::new(text.as_bytes());
            let b = text.find('b').unwrap();
            // From the end of the line before, where `csv` lets the record begin, and from itself.
            assert_eq!(lines.line_at(1), 2, "{text:?}");
            assert_eq!(lines.line_at(b), 2, "{text:?}");
            assert_eq!(lines.line_at(b + 1), 4, "{text:?}");
            assert_eq!(lines.line_at(999), 4, "{text:?}");
        }
    }
}
