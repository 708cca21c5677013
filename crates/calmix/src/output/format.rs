//! Numbers, paths and commands as text.

use std::path::Path;

use calmix_io::shown::shown;
use calmix_io::text::MAX_LINE_WIDTH;
use calmix_metrics::metrics::Interval;

pub use calmix_io::shown::shell_quoted;
pub use calmix_io::text::{counted, counted_in_groups, grouped};
pub use calmix_run::sink::phrase::{
    confidence_in_words, ece_in_words, measured as percent, over_or_under, pseudo_in_words, rough_time,
    signed_gap,
};

/// The maximum number of classes that a message names.
pub(crate) const MAX_NAMED_CLASSES: usize = 20;

/// Formats a number with its confidence interval.
pub fn decimal(metric: f64, interval: Option<Interval>) -> String {
    let interval = interval.map(|Interval { low, high }| format!(" ({low:.3} to {high:.3})"));
    format!("{metric:.3}{}", interval.unwrap_or_default())
}

/// Returns a line with the place where something was written, followed by `more`. A long path gets a line of its own, so that it
/// can be copied.
pub fn written_to(path: &str, more: &str) -> String {
    let line = format!("written to {path}{more}");
    if line.chars().count() <= MAX_LINE_WIDTH {
        return line;
    }
    let line = format!("  {path}{more}");
    if line.chars().count() <= MAX_LINE_WIDTH {
        return format!("written to\n{line}");
    }
    format!("written to\n  {path}{}", more.replacen(' ', "\n  ", 1))
}

/// Abbreviates a hash to the length that messages show.
pub fn short_hash(hash: &str) -> String {
    hash.chars().take(12).collect()
}

/// Lists the names of classes, and marks if there are more than a message names.
pub fn class_list(classes: &[String]) -> String {
    list(classes.iter().map(shown), MAX_NAMED_CLASSES)
}

/// Lists up to `max` names, and marks if there are more.
pub fn list(mut names: impl Iterator<Item = String>, max: usize) -> String {
    let named: Vec<String> = names.by_ref().take(max).collect();
    let more = if names.next().is_some() { ", …" } else { "" };
    named.join(", ") + more
}

/// Formats bytes in the largest unit that leaves a whole number.
pub fn bytes(number: u64) -> String {
    match number {
        0..10_000 => format!("{} bytes", grouped(number)),
        10_000..10_000_000 => format!("{} kB", grouped(number / 1_000)),
        _ => format!("{} MB", grouped(number / 1_000_000)),
    }
}

/// Returns the command line of this process without one of its options.
pub fn same_command(without: &str) -> String {
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != without);
    let words: Vec<String> = arguments.map(|argument| shell_quoted(Path::new(&argument))).collect();
    format!("calmix {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(percent(0.5, Some(Interval { low: 0.25, high: 0.75 })), "50.0% (25.0 to 75.0)");
        assert_eq!(written_to("run", ": a, b"), "written to run: a, b");
        let path = "p".repeat(90);
        assert_eq!(written_to(&path, ": a"), format!("written to\n  {path}: a"));
        assert_eq!(written_to(&path, ": model.json, b"), format!("written to\n  {path}:\n  model.json, b"));
        assert_eq!([9_999, 10_000, 12_345_678].map(bytes), ["9,999 bytes", "10 kB", "12 MB"]);
    }
}
