//! What is printed where: results to standard output, with `--json` as one document; progress, status and warnings to
//! standard error. No control character of a name or a text from outside gets through.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anyhow::Context;
use calmix::io::shown::{is_command, shown_lines};
use calmix::run::sink::ProgressStyle;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, stat};
use serde_json::Value;

/// Columns of a terminal whose width is unknown.
const COLUMNS: usize = 80;

/// Prints a result.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{}", shown_lines(text.trim_end())).and_then(|()| out.flush());
    written.context("cannot write to standard output")
}

/// Whether this process was started without a standard output. The standard library then opens `/dev/null` for reading and
/// writing in its place, as `> /dev/null` does not; what is written there is lost without an error.
pub(crate) fn is_stdout_closed() -> bool {
    let out = io::stdout();
    let is_null = || {
        let (found, null) = (fstat(&out).ok()?, stat("/dev/null").ok()?);
        Some(found.st_rdev == null.st_rdev && FileType::from_raw_mode(found.st_mode).is_char_device())
    };
    let is_read = fcntl_getfl(&out).is_ok_and(|flags| flags.contains(OFlags::RDWR));
    is_read && is_null().unwrap_or(false)
}

/// Prints a result as one JSON document.
pub(crate) fn print_json(document: &Value) -> anyhow::Result<()> {
    print(&escaped_json(&serde_json::to_string_pretty(document)?))
}

/// JSON writes out only some of the control characters.
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
pub(crate) fn status(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", shown_lines(text.trim_end()));
}

/// [`status`], with a word in a colour (an SGR code) before it, if the terminal shows colours.
pub(crate) fn status_with(word: &str, colour: &str, text: &str) {
    let word = if has_colour() { format!("\x1b[1;{colour}m{word}\x1b[0m") } else { word.to_owned() };
    let _ = writeln!(io::stderr().lock(), "{word} {}", shown_lines(text.trim_end()));
}

/// Shows a warning.
pub(crate) fn warn(text: &str) {
    status_with("warning:", "33", text);
}

/// Shows a warning over the line of a progress bar, from any thread.
pub(crate) fn warn_at_once(text: &str) {
    clear_line();
    warn(text);
}

/// Shows progress: on a terminal in the place of what it showed before.
pub(crate) fn status_in_place(text: &str) {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr().lock(), "\r\x1b[K{}", shown_lines(text.trim_end()));
    } else {
        status(text);
    }
}

/// Clears the line of a progress bar.
pub(crate) fn clear_line() {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr().lock(), "\r\x1b[K");
    }
}

/// How progress is shown.
pub(crate) fn progress_style() -> ProgressStyle {
    if !io::stderr().is_terminal() {
        return ProgressStyle::Plain;
    }
    let width = terminal_size::terminal_size_of(io::stderr());
    ProgressStyle::Terminal {
        columns: width.map_or(COLUMNS, |(width, _)| usize::from(width.0)),
        colour: has_colour(),
    }
}

/// Whether standard error gets colours: on a terminal that has them, as `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and `TERM`
/// say. clap's messages follow the same rule.
fn has_colour() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}
