//! Line numbers of a CSV text, counted as in an editor, and its empty lines: the crate `csv` skips them, although each may
//! stand for a row.

/// Counts the empty lines at `place`, which is the end of a record or 0.
///
/// A record that ends in CR LF may end after either byte; before empty lines, it ends after its CR.
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

/// Maps positions in a text to line numbers; positions must ascend.
#[derive(Debug)]
pub struct LineCount<'a> {
    text: &'a [u8],
    place: usize,
    line: u64,
}

impl<'a> LineCount<'a> {
    /// Starts counting at the first line of a text.
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, place: 0, line: 1 }
    }

    /// Returns the line of the first byte at or after `place` that is not a line ending: in the crate `csv`, the position of
    /// a record includes the line endings before it.
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
            // The end of the record `a`: after its CR or LF.
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
            // From the end of the line before, where `csv` may place the start of the record, and from the start itself.
            assert_eq!(lines.line_at(1), 2, "{text:?}");
            assert_eq!(lines.line_at(b), 2, "{text:?}");
            assert_eq!(lines.line_at(b + 1), 4, "{text:?}");
            assert_eq!(lines.line_at(999), 4, "{text:?}");
        }
    }
}
