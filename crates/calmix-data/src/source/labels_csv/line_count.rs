//! Counts the lines of a text as an editor does.

/// The line of each place in a text; places have to ascend.
#[derive(Debug)]
pub(in crate::source) struct LineCount<'a> {
    text: &'a [u8],
    place: usize,
    line: u64,
}

impl<'a> LineCount<'a> {
    pub(in crate::source) fn new(text: &'a [u8]) -> Self {
        Self { text, place: 0, line: 1 }
    }

    /// The line of the first byte at or after `place` that is not a line ending: the position of a record of the crate
    /// `csv` includes the line endings before it.
    pub(in crate::source) fn line_at(&mut self, place: usize) -> u64 {
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
