//! The command line of this process, for messages that suggest running it again.

use std::path::Path;

use crate::output::format::shell_quoted;

/// The command line of this process, without one of its options.
pub fn same_command(without: &str) -> String {
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != without);
    let words: Vec<String> = arguments.map(|argument| shell_quoted(Path::new(&argument))).collect();
    format!("calmix {}", words.join(" "))
}
