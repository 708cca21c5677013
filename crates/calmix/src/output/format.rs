//! Numbers as text.

use calmix_io::wrapped::LONGEST_LINE;
use calmix_metrics::metrics::Interval;

pub use calmix_io::counted::{counted, counted_in_groups, grouped};
pub use calmix_io::shell_quoted::shell_quoted;
pub use calmix_run::sink::phrase::{
    confidence_in_words, ece_in_words, measured as percent, over_or_under, pseudo_in_words, rough_time,
    signed_gap,
};

/// Formats a number with its confidence interval.
pub fn decimal(metric: f64, interval: Option<Interval>) -> String {
    let interval = interval.map(|Interval { low, high }| format!(" ({low:.3} to {high:.3})"));
    format!("{metric:.3}{}", interval.unwrap_or_default())
}

/// Says where something was written, and what follows. A long path gets a line of its own, which can be copied whole.
pub fn written_to(path: &str, more: &str) -> String {
    let line = format!("written to {path}{more}");
    if line.chars().count() <= LONGEST_LINE {
        return line;
    }
    let line = format!("  {path}{more}");
    if line.chars().count() <= LONGEST_LINE {
        return format!("written to\n{line}");
    }
    format!("written to\n  {path}{}", more.replacen(' ', "\n  ", 1))
}

/// Formats bytes in the largest unit that leaves a whole number.
pub fn bytes(number: u64) -> String {
    match number {
        0..10_000 => format!("{} bytes", grouped(number)),
        10_000..10_000_000 => format!("{} kB", grouped(number / 1_000)),
        _ => format!("{} MB", grouped(number / 1_000_000)),
    }
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
