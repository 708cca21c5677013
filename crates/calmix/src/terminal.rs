//! Output: results to standard output, with `--json` as one document; progress, status and warnings to standard error. Control
//! characters in names and other external text are escaped.
//!
//! On a terminal, a line of progress has no line end until it is redrawn. All printing goes through this module, so that such a
//! line is cleared first, whichever thread prints.

pub mod progress;
pub mod rate;

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use anyhow::Context;
use calmix_io::shown::{is_command, shown_lines};
use calmix_io::text::{MAX_LINE_WIDTH, wrapped_to};
use calmix_run::sink::ProgressStyle;
use serde_json::Value;

/// The columns assumed for a terminal of unknown width.
const DEFAULT_COLUMNS: usize = 80;

/// The line of progress on the terminal, if any.
static PROGRESS: ProgressLine = ProgressLine::new();

/// Prints a result.
pub fn print(text: &str) -> anyhow::Result<()> {
    clear_line();
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{}", shown_lines(text.trim_end())).and_then(|()| out.flush());
    written.context("cannot write to standard output")
}

/// Prints a result as one JSON document.
pub fn print_json(document: &Value) -> anyhow::Result<()> {
    print(&escaped_json(&serde_json::to_string_pretty(document)?))
}

/// The output of a command: text, or one JSON document with `--json`.
#[derive(Debug)]
pub struct Output {
    pub text: String,
    pub json: Value,
}

impl Output {
    /// Prints the document if `is_json`, otherwise the text.
    pub fn print(&self, is_json: bool) -> anyhow::Result<()> {
        if is_json { print_json(&self.json) } else { print(&self.text) }
    }
}

/// Escapes the control characters that JSON leaves unescaped.
fn escaped_json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_command(c) && c != '\n' {
            // Writing to a string does not fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Shows the current activity. A closed standard error is not a failure.
pub fn status(text: &str) {
    message(&for_stderr(text, 0));
}

/// Shows a status after a coloured word (an SGR code), if the terminal has colours.
pub fn status_with(word: &str, colour: &str, text: &str) {
    let text = for_stderr(text, word.chars().count() + 1);
    let word = if has_colour() { format!("\x1b[1;{colour}m{word}\x1b[0m") } else { word.to_owned() };
    message(&format!("{word} {text}"));
}

/// Writes lines to standard error, replacing a line of progress if there is one.
fn message(text: &str) {
    let _ = PROGRESS.write(&mut io::stderr().lock(), &format!("{text}\n"));
}

/// Prepares a text for standard error: long lines are broken on a terminal, but not for programs that read it.
fn for_stderr(text: &str, indent: usize) -> String {
    let text = shown_lines(text.trim_end());
    if io::stderr().is_terminal() { wrapped(columns().min(MAX_LINE_WIDTH), &text, indent) } else { text }
}

/// Breaks long lines at spaces. The first line begins in the column `indent`, and so do its continuations. Commands to copy are
/// not broken.
fn wrapped(columns: usize, text: &str, indent: usize) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with("next: ") || line.contains("  ") {
            lines.push(line.to_owned());
            continue;
        }
        lines.push(wrapped_to(columns, line, indent, indent));
    }
    lines.join("\n")
}

pub fn warn(text: &str) {
    status_with("warning:", "33", text);
}

/// Shows progress; on a terminal, it replaces the previous line of progress.
pub fn status_in_place(text: &str) {
    if !io::stderr().is_terminal() {
        status(text);
        return;
    }
    // Leave one column free: a full row would move the cursor to the next one, and could not be cleared.
    let room = columns().saturating_sub(1);
    let line: String = shown_lines(text.trim_end()).chars().take(room).collect();
    let _ = PROGRESS.redraw(&mut io::stderr().lock(), &line);
}

/// Clears the line of progress, if the terminal shows one.
pub fn clear_line() {
    let _ = PROGRESS.write(&mut io::stderr().lock(), "");
}

/// Standard error for the progress of a run. Each write is a line, or a line to be redrawn.
#[derive(Debug, Clone, Copy)]
pub struct ProgressStream;

impl Write for ProgressStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let mut stderr = io::stderr().lock();
        if text.ends_with('\n') {
            PROGRESS.write(&mut stderr, &text)?;
        } else {
            PROGRESS.redraw(&mut stderr, &text)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Returns the style of the progress on standard error.
pub fn progress_style() -> ProgressStyle {
    if !io::stderr().is_terminal() {
        return ProgressStyle::Plain;
    }
    ProgressStyle::Terminal { columns: columns(), colour: has_colour() }
}

/// Breaks a sentence of a result into lines of the terminal's width.
pub fn sentence(text: &str) -> String {
    let columns = if io::stdout().is_terminal() { columns().min(MAX_LINE_WIDTH) } else { MAX_LINE_WIDTH };
    wrapped_to(columns, text, 0, 0)
}

/// Returns the width of the terminal.
fn columns() -> usize {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.or_else(|| terminal_size::terminal_size_of(io::stdout()))
        .map_or(DEFAULT_COLUMNS, |(width, _)| usize::from(width.0))
}

/// Returns whether standard error gets colours: a terminal that has them, subject to `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and
/// `TERM`. clap's messages follow the same rule.
fn has_colour() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// Moves the cursor to the first column and clears the line.
const CLEAR: &str = "\r\x1b[K";

/// The state of the terminal's current line: whether it is a line of progress.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    is_drawn: AtomicBool,
}

impl ProgressLine {
    pub(crate) const fn new() -> Self {
        Self { is_drawn: AtomicBool::new(false) }
    }

    /// Writes whole lines, or nothing, in place of the line of progress. The caller holds the lock of `to`, so no other thread
    /// writes in between.
    pub(crate) fn write(&self, to: &mut impl Write, lines: &str) -> io::Result<()> {
        let clear = if self.is_drawn.swap(false, Ordering::Relaxed) { CLEAR } else { "" };
        let lines = lines.strip_prefix(CLEAR).unwrap_or(lines);
        if clear.is_empty() && lines.is_empty() {
            return Ok(());
        }
        to.write_all(format!("{clear}{lines}").as_bytes())
    }

    /// Draws a line of progress in place of the previous one.
    pub(crate) fn redraw(&self, to: &mut impl Write, line: &str) -> io::Result<()> {
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
    fn long_sentences_are_broken_and_commands_are_not() {
        let sentence = "word ".repeat(30);
        let broken = wrapped(MAX_LINE_WIDTH, sentence.trim_end(), 9);
        assert!(broken.lines().skip(1).all(|line| line.starts_with("         word")), "{broken}");
        // The first line follows a word of eight letters and a space.
        assert!(
            broken.lines().next().is_some_and(|line| line.chars().count() + 9 <= MAX_LINE_WIDTH),
            "{broken}"
        );
        assert!(broken.lines().skip(1).all(|line| line.chars().count() <= MAX_LINE_WIDTH), "{broken}");
        assert_eq!(broken.split_whitespace().count(), 30);
        let command = format!("next: calmix train {sentence}");
        assert_eq!(wrapped(MAX_LINE_WIDTH, &command, 0), command);
        assert_eq!(wrapped(MAX_LINE_WIDTH, "a\n\nb", 0), "a\n\nb");
    }

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
