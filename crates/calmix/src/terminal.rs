//! Output: results to standard output, with `--json` as one document; progress, status and warnings to standard error.
//! Control characters in names and other external text are escaped.
//!
//! A line of progress stays without an end on a terminal until it is redrawn. Everything that is printed passes through here,
//! so that it clears such a line first, whichever thread prints.

pub mod progress;
mod progress_line;
pub mod rate;

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anyhow::Context;
use calmix_io::shown::{is_command, shown_lines};
use calmix_io::wrapped::{LONGEST_LINE, wrapped_to};
use calmix_run::sink::ProgressStyle;
use progress_line::ProgressLine;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, stat};
use serde_json::Value;

/// The columns assumed for a terminal of unknown width.
const COLUMNS: usize = 80;

/// Whether the terminal shows a line of progress.
static PROGRESS: ProgressLine = ProgressLine::new();

/// Prints a result.
pub fn print(text: &str) -> anyhow::Result<()> {
    clear_line();
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{}", shown_lines(text.trim_end())).and_then(|()| out.flush());
    written.context("cannot write to standard output")
}

/// Whether this process was started without a standard output. The standard library then opens `/dev/null` for reading and
/// writing in its place, as `> /dev/null` does not; what is written there is lost without an error.
pub fn is_stdout_closed() -> bool {
    let out = io::stdout();
    let is_null = || {
        let found = fstat(&out).ok()?;
        let null = stat("/dev/null").ok()?;
        Some(found.st_rdev == null.st_rdev && FileType::from_raw_mode(found.st_mode).is_char_device())
    };
    let is_read = fcntl_getfl(&out).is_ok_and(|flags| flags.contains(OFlags::RDWR));
    is_read && is_null().unwrap_or(false)
}

/// Prints a result as one JSON document.
pub fn print_json(document: &Value) -> anyhow::Result<()> {
    print(&escaped_json(&serde_json::to_string_pretty(document)?))
}

/// Escapes the control characters that JSON does not.
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

/// Shows what the command is doing. A closed standard error is not a failure.
pub fn status(text: &str) {
    message(&for_stderr(text, 0));
}

/// [`status`], with a word in a colour (an SGR code) before it, if the terminal shows colours.
pub fn status_with(word: &str, colour: &str, text: &str) {
    let text = for_stderr(text, word.chars().count() + 1);
    let word = if has_colour() { format!("\x1b[1;{colour}m{word}\x1b[0m") } else { word.to_owned() };
    message(&format!("{word} {text}"));
}

/// Writes lines to standard error, in the place of a line of progress if there is one.
fn message(text: &str) {
    let _ = PROGRESS.write(&mut io::stderr().lock(), &format!("{text}\n"));
}

/// The text as standard error gets it: on a terminal its long lines are broken. Programs that read it get whole lines.
fn for_stderr(text: &str, indent: usize) -> String {
    let text = shown_lines(text.trim_end());
    if io::stderr().is_terminal() { wrapped(columns().min(LONGEST_LINE), &text, indent) } else { text }
}

/// Breaks long lines at spaces. The first line begins in the column `indent`, and so do those that continue it. Commands to copy
/// stay whole.
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

/// Shows a warning.
pub fn warn(text: &str) {
    status_with("warning:", "33", text);
}

/// Shows a warning from any thread.
pub fn warn_at_once(text: &str) {
    warn(text);
}

/// Shows progress: on a terminal in the place of what it showed before.
pub fn status_in_place(text: &str) {
    if !io::stderr().is_terminal() {
        status(text);
        return;
    }
    // A line that fills the row would move the cursor to the next one, and could not be cleared.
    let room = columns().saturating_sub(1);
    let line: String = shown_lines(text.trim_end()).chars().take(room).collect();
    let _ = PROGRESS.redraw(&mut io::stderr().lock(), &line);
}

/// Clears the line of progress, if the terminal shows one.
pub fn clear_line() {
    let _ = PROGRESS.write(&mut io::stderr().lock(), "");
}

/// Standard error for the progress of a run, which writes a line, or one to be redrawn, at a time.
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

/// Breaks a sentence of a result into lines: those of the terminal, if there is one.
pub fn sentence(text: &str) -> String {
    let columns = if io::stdout().is_terminal() { columns().min(LONGEST_LINE) } else { LONGEST_LINE };
    wrapped_to(columns, text, 0, 0)
}

/// The width of the terminal.
fn columns() -> usize {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.or_else(|| terminal_size::terminal_size_of(io::stdout()))
        .map_or(COLUMNS, |(width, _)| usize::from(width.0))
}

/// Whether standard error gets colours: on a terminal that has them, as `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and `TERM`
/// say. clap's messages follow the same rule.
fn has_colour() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sentences_are_broken_and_commands_are_not() {
        let sentence = "word ".repeat(30);
        let broken = wrapped(LONGEST_LINE, sentence.trim_end(), 9);
        assert!(broken.lines().skip(1).all(|line| line.starts_with("         word")), "{broken}");
        // The first line follows a word of eight letters and a space.
        assert!(
            broken.lines().next().is_some_and(|line| line.chars().count() + 9 <= LONGEST_LINE),
            "{broken}"
        );
        assert!(broken.lines().skip(1).all(|line| line.chars().count() <= LONGEST_LINE), "{broken}");
        assert_eq!(broken.split_whitespace().count(), 30);
        let command = format!("next: calmix train {sentence}");
        assert_eq!(wrapped(LONGEST_LINE, &command, 0), command);
        assert_eq!(wrapped(LONGEST_LINE, "a\n\nb", 0), "a\n\nb");
    }
}
