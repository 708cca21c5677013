//! A line of progress at the bottom of a terminal, which is redrawn until a message takes its place.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Moves the cursor to the first column and clears the line.
const CLEAR: &str = "\r\x1b[K";

/// Whether the current line of a terminal is one of progress.
#[derive(Debug)]
pub(super) struct ProgressLine {
    is_drawn: AtomicBool,
}

impl ProgressLine {
    pub(super) const fn new() -> Self {
        Self { is_drawn: AtomicBool::new(false) }
    }

    /// Writes whole lines, or nothing, in the place of the line of progress. The caller holds the lock of `to`, so no other
    /// thread writes in between.
    pub(super) fn write(&self, to: &mut impl Write, lines: &str) -> io::Result<()> {
        let clear = if self.is_drawn.swap(false, Ordering::Relaxed) { CLEAR } else { "" };
        let lines = lines.strip_prefix(CLEAR).unwrap_or(lines);
        if clear.is_empty() && lines.is_empty() {
            return Ok(());
        }
        to.write_all(format!("{clear}{lines}").as_bytes())
    }

    /// Draws a line of progress in the place of the one before.
    pub(super) fn redraw(&self, to: &mut impl Write, line: &str) -> io::Result<()> {
        self.is_drawn.store(true, Ordering::Relaxed);
        let line = line.strip_prefix(CLEAR).unwrap_or(line);
        to.write_all(format!("{CLEAR}{line}").as_bytes())?;
        to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_clears_the_progress_line() {
        let progress = ProgressLine::new();
        let mut terminal = Vec::new();
        progress.write(&mut terminal, "reading\n").unwrap();
        progress.redraw(&mut terminal, "heads: 1 of 33 trainings").unwrap();
        progress.redraw(&mut terminal, "\r\x1b[Kheads: 2 of 33 trainings").unwrap();
        progress.write(&mut terminal, "warning: no mixtures\n").unwrap();
        progress.write(&mut terminal, "").unwrap();
        progress.write(&mut terminal, "next\n").unwrap();
        let expected = "reading\n\r\x1b[Kheads: 1 of 33 trainings\r\x1b[Kheads: 2 of 33 trainings\
                        \r\x1b[Kwarning: no mixtures\nnext\n";
        assert_eq!(String::from_utf8(terminal).unwrap(), expected);
    }
}
