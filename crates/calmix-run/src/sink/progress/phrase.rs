//! Numbers as people read them.

use crate::evaluate::Limits;

/// Thousands apart: 1,048,576.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A share as per cent, five columns wide.
pub(super) fn percent(share: f64) -> String {
    format!("{:>4.1} %", 100.0 * share)
}

/// A share as per cent with its limits.
pub fn measured(share: f64, limits: Option<Limits>) -> String {
    let limits = limits.map(|limits| format!(" ({:.1} to {:.1})", 100.0 * limits.low, 100.0 * limits.high));
    format!("{:.1} %{}", 100.0 * share, limits.unwrap_or_default())
}

/// A duration by its largest units.
pub(super) fn rough_time(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min"),
        3600..172_800 => format!("{hours} h {:02} min", minutes % 60),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 999, 1000, 1_048_576].map(grouped), ["0", "999", "1,000", "1,048,576"]);
        assert_eq!(
            [0.4, 59.6, 185.0, 7260.0, 200_000.0].map(rough_time),
            ["0 s", "1 min", "3 min", "2 h 01 min", "2 d 7 h"]
        );
        assert_eq!(percent(0.0794), " 7.9 %");
        assert_eq!(measured(0.5, Some(Limits { low: 0.25, high: 0.75 })), "50.0 % (25.0 to 75.0)");
    }
}
