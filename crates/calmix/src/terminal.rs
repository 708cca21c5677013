//! What is printed where: results to standard output, with `--json` as one document; progress, status and warnings to
//! standard error.

use std::io::{self, IsTerminal, Write};

use calmix::run::sink::Look;
use serde_json::Value;

/// Columns of a terminal whose width is unknown.
const COLUMNS: usize = 80;

/// Prints a result.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    Ok(out.flush()?)
}

/// Prints a result as one JSON document.
pub(crate) fn print_json(document: &Value) -> anyhow::Result<()> {
    print(&serde_json::to_string_pretty(document)?)
}

/// Shows what the command is doing. A closed standard error is no failure.
pub(crate) fn status(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
}

/// Shows a warning.
pub(crate) fn warn(text: &str) {
    status(&format!("{} {text}", coloured("warning:", "33")));
}

/// Clears the line of a progress bar.
pub(crate) fn clear_line() {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr().lock(), "\r\x1b[K");
    }
}

/// A word in a colour (an SGR code), if the terminal shows colours.
pub(crate) fn coloured(word: &str, colour: &str) -> String {
    if has_colour() { format!("\x1b[1;{colour}m{word}\x1b[0m") } else { word.to_owned() }
}

/// How progress is shown.
pub(crate) fn look() -> Look {
    if !io::stderr().is_terminal() {
        return Look::Plain;
    }
    let width = terminal_size::terminal_size_of(io::stderr());
    Look::Terminal { columns: width.map_or(COLUMNS, |(width, _)| usize::from(width.0)), colour: has_colour() }
}

/// On a terminal, unless the user set `NO_COLOR` (<https://no-color.org>).
fn has_colour() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
