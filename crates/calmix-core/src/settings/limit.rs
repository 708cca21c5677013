//! The range that the numbers of a key must lie in.

use std::fmt;

/// An interval whose ends are each included or excluded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The lower end.
    pub least: f64,
    /// Whether the lower end is excluded.
    pub above: bool,
    /// The upper end.
    pub most: f64,
    /// Whether the upper end is excluded.
    pub below: bool,
}

/// Any finite number.
pub const ANY: Limit = Limit { least: f64::NEG_INFINITY, above: false, most: f64::INFINITY, below: false };
/// A share, from 0 to 1.
pub const SHARE: Limit = from(0.0).to(1.0);
/// A share above 0, up to 1.
pub const SOME_SHARE: Limit = above(0.0).to(1.0);
/// The share that a running value keeps at each step: from 0, below 1.
pub const KEPT: Limit = from(0.0).below(1.0);
/// A count of at least one.
pub const SOME: Limit = from(1.0);

/// Returns the limit of all numbers of at least `least`.
pub const fn from(least: f64) -> Limit {
    Limit { least, ..ANY }
}

/// Returns the limit of all numbers greater than `least`.
pub const fn above(least: f64) -> Limit {
    Limit { least, above: true, ..ANY }
}

impl Limit {
    /// Ends the range at `most`, included.
    #[must_use]
    pub const fn to(self, most: f64) -> Self {
        Self { most, below: false, ..self }
    }

    /// Ends the range at `most`, excluded.
    #[must_use]
    pub const fn below(self, most: f64) -> Self {
        Self { most, below: true, ..self }
    }

    /// Returns whether a number lies in the range; NaN and infinities never do.
    pub fn holds(self, value: f64) -> bool {
        let low = if self.above { value > self.least } else { value >= self.least };
        let high = if self.below { value < self.most } else { value <= self.most };
        low && high && value.is_finite()
    }
}

impl fmt::Display for Limit {
    /// Writes ` from 0 to 1` with a leading space, so that it can follow a noun; nothing for [`ANY`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { least, most, .. } = self;
        match (least.is_finite(), most.is_finite(), self.above, self.below) {
            (true, true, false, false) => write!(f, " from {least} to {most}"),
            (true, true, false, true) => write!(f, " of at least {least} and below {most}"),
            (true, true, true, false) => write!(f, " above {least} and up to {most}"),
            (true, true, true, true) => write!(f, " above {least} and below {most}"),
            (true, false, false, _) => write!(f, " of at least {least}"),
            (true, false, true, _) => write!(f, " above {least}"),
            (false, true, _, false) => write!(f, " of at most {most}"),
            (false, true, _, true) => write!(f, " below {most}"),
            (false, false, ..) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_ends_are_included_or_excluded() {
        for (limit, inside, outside, words) in [
            (SHARE, [0.0, 1.0], [-0.1, 1.1], " from 0 to 1"),
            (SOME_SHARE, [0.1, 1.0], [0.0, 1.1], " above 0 and up to 1"),
            (KEPT, [0.0, 0.999], [-0.1, 1.0], " of at least 0 and below 1"),
            (SOME, [1.0, 1e18], [0.0, f64::INFINITY], " of at least 1"),
            (above(0.0), [1e-9, 5.0], [0.0, f64::NAN], " above 0"),
            (ANY, [-1.0, 1.0], [f64::NAN, f64::INFINITY], ""),
        ] {
            assert!(inside.iter().all(|&value| limit.holds(value)), "{limit}");
            assert!(outside.iter().all(|&value| !limit.holds(value)), "{limit}");
            assert_eq!(limit.to_string(), words);
        }
    }
}
