//! Between what the numbers of a key lie.

use std::fmt;

use super::OutOfRange;

/// An interval, each end of which belongs to it or does not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The lower end.
    pub least: f64,
    /// Whether the lower end is left out.
    pub above: bool,
    /// The upper end.
    pub most: f64,
    /// Whether the upper end is left out.
    pub below: bool,
}

/// Any number.
pub const ANY: Limit = Limit { least: f64::NEG_INFINITY, above: false, most: f64::INFINITY, below: false };
/// A share of something.
pub const SHARE: Limit = from(0.0).to(1.0);
/// A share of something, and not nothing.
pub const SOME_SHARE: Limit = above(0.0).to(1.0);
/// What a running value keeps: never all of it.
pub const KEPT: Limit = from(0.0).below(1.0);
/// How many, at least one.
pub const SOME: Limit = from(1.0);

/// This number and everything greater.
pub const fn from(least: f64) -> Limit {
    Limit { least, ..ANY }
}

/// Everything greater than this number.
pub const fn above(least: f64) -> Limit {
    Limit { least, above: true, ..ANY }
}

impl Limit {
    /// Up to and with this number.
    #[must_use]
    pub const fn to(self, most: f64) -> Self {
        Self { most, below: false, ..self }
    }

    /// Up to and without this number.
    #[must_use]
    pub const fn below(self, most: f64) -> Self {
        Self { most, below: true, ..self }
    }

    /// Whether a number lies within; what is not a number never does.
    pub fn holds(self, value: f64) -> bool {
        let low = if self.above { value > self.least } else { value >= self.least };
        let high = if self.below { value < self.most } else { value <= self.most };
        low && high && value.is_finite()
    }

    /// Checks a number that has a name.
    ///
    /// # Errors
    /// If it lies outside.
    pub fn check(self, name: &str, value: f64) -> Result<(), OutOfRange> {
        let out_of_range = || OutOfRange { setting: name.to_owned(), value, limit: self };
        if self.holds(value) { Ok(()) } else { Err(out_of_range()) }
    }
}

impl fmt::Display for Limit {
    /// ` from 0 to 1`, with the space before it; nothing for any number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { least, most, .. } = self;
        if least.is_finite() {
            write!(f, " {} {least}", if self.above { "above" } else { "from" })?;
        }
        match (least.is_finite(), most.is_finite(), self.above, self.below) {
            (true, false, false, _) => f.write_str(" up"),
            (_, false, ..) => Ok(()),
            (true, true, true, false) => write!(f, " and up to {most}"),
            (_, true, _, true) => write!(f, " and below {most}"),
            (_, true, _, false) => write!(f, " to {most}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_belong_or_do_not() {
        for (limit, inside, outside, words) in [
            (SHARE, [0.0, 1.0], [-0.1, 1.1], " from 0 to 1"),
            (SOME_SHARE, [0.1, 1.0], [0.0, 1.1], " above 0 and up to 1"),
            (KEPT, [0.0, 0.999], [-0.1, 1.0], " from 0 and below 1"),
            (SOME, [1.0, 1e18], [0.0, f64::INFINITY], " from 1 up"),
            (above(0.0), [1e-9, 5.0], [0.0, f64::NAN], " above 0"),
            (ANY, [-1.0, 1.0], [f64::NAN, f64::INFINITY], ""),
        ] {
            assert!(inside.iter().all(|&value| limit.holds(value)), "{limit}");
            assert!(outside.iter().all(|&value| !limit.holds(value)), "{limit}");
            assert_eq!(limit.to_string(), words);
        }
    }
}
