//! Who reads what is printed: a person at a terminal, or a file.
//!
//! Results go to standard output, for a program as one JSON document; progress, summaries and warnings to standard error.

use std::io::{self, IsTerminal, Write};

use calmix::train::sink::Look;
use serde_json::Value;

/// Columns of a terminal that does not tell.
const COLUMNS: usize = 80;

/// Prints a result.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    Ok(out.flush()?)
}

/// Prints a result for programs: one JSON document.
pub(crate) fn say_json(document: &Value) -> anyhow::Result<()> {
    say(&serde_json::to_string_pretty(document)?)
}

/// Tells a person what goes on. Nobody may be listening, which changes nothing.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
}

/// Tells of something that is probably not meant.
pub(crate) fn warn(text: &str) {
    tell(&format!("{} {text}", painted("warning:", "33")));
}

/// Clears what a progress bar left on the line.
pub(crate) fn clear_line() {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr().lock(), "\r\x1b[K");
    }
}

/// A word in a colour of the terminal's, where colours are welcome.
pub(crate) fn painted(word: &str, colour: &str) -> String {
    if is_colourful() { format!("\x1b[1;{colour}m{word}\x1b[0m") } else { word.to_owned() }
}

/// How progress looks.
pub(crate) fn look() -> Look {
    if !io::stderr().is_terminal() {
        return Look::Plain;
    }
    let width = terminal_size::terminal_size_of(io::stderr());
    Look::Terminal {
        columns: width.map_or(COLUMNS, |(width, _)| usize::from(width.0)),
        colour: is_colourful(),
    }
}

/// On a terminal, unless <https://no-color.org> asks otherwise.
fn is_colourful() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
