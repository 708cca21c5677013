//! The date of today, and the time.

use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// Returns the date in UTC as `YYYY-MM-DD`.
pub(crate) fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(now.as_secs() / SECONDS_PER_DAY)
}

/// Returns the time in UTC as `YYYY-MM-DDTHH:MM:SSZ`.
pub(crate) fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let second = now % SECONDS_PER_DAY;
    let hour = second / 3_600;
    let minute = second / 60 % 60;
    format!("{}T{hour:02}:{minute:02}:{:02}Z", date(now / SECONDS_PER_DAY), second % 60)
}

/// Returns the Gregorian date of a day counted from 1 January 1970.
fn date(day: u64) -> String {
    // Years begin in March, so that the leap day is the last day of a year, and eras of 400 years have the same length (Howard
    // Hinnant, "chrono-compatible low-level date algorithms").
    let day = day + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `date -u -d @SECONDS +%F`
    #[test]
    fn days_have_the_dates_of_the_system() {
        for (day, expected) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_776, "2026-11-19"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
            (19_722, "2023-12-31"),
        ] {
            assert_eq!(date(day), expected, "{day}");
        }
    }
}
