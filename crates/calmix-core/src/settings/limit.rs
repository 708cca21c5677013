//! The range that the numbers of a key must lie in.

use std::fmt;

/// An interval whose ends are each included or excluded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The lower end; −∞ if there is none.
    pub min: f64,
    /// Whether the lower end is excluded.
    pub min_excluded: bool,
    /// The upper end; ∞ if there is none.
    pub max: f64,
    /// Whether the upper end is excluded.
    pub max_excluded: bool,
}

/// Any finite number.
pub const ANY: Limit =
    Limit { min: f64::NEG_INFINITY, min_excluded: false, max: f64::INFINITY, max_excluded: false };
/// [0, 1].
pub const SHARE: Limit = from(0.0).to(1.0);
/// (0, 1].
pub const POSITIVE_SHARE: Limit = above(0.0).to(1.0);
/// [0, 1), as the momentum of a running average.
pub const UNIT_INTERVAL: Limit = from(0.0).below(1.0);
/// A count of at least one.
pub const AT_LEAST_ONE: Limit = from(1.0);

/// Returns the limit of all numbers of at least `min`.
pub const fn from(min: f64) -> Limit {
    Limit { min, ..ANY }
}

/// Returns the limit of all numbers greater than `min`.
pub const fn above(min: f64) -> Limit {
    Limit { min, min_excluded: true, ..ANY }
}

impl Limit {
    /// Ends the range at `max`, included.
    #[must_use]
    pub const fn to(self, max: f64) -> Self {
        Self { max, max_excluded: false, ..self }
    }

    /// Ends the range at `max`, excluded.
    #[must_use]
    pub const fn below(self, max: f64) -> Self {
        Self { max, max_excluded: true, ..self }
    }

    /// Returns whether a number lies in the range; NaN and infinities never do.
    pub fn contains(self, value: f64) -> bool {
        let is_above = if self.min_excluded { value > self.min } else { value >= self.min };
        let is_below = if self.max_excluded { value < self.max } else { value <= self.max };
        is_above && is_below && value.is_finite()
    }
}

impl fmt::Display for Limit {
    /// Writes ` from 0 to 1` with a leading space, so that it can follow a noun; nothing for [`ANY`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { min, max, .. } = self;
        match (min.is_finite(), max.is_finite(), self.min_excluded, self.max_excluded) {
            (true, true, false, false) => write!(f, " from {min} to {max}"),
            (true, true, false, true) => write!(f, " of at least {min} and below {max}"),
            (true, true, true, false) => write!(f, " above {min} and up to {max}"),
            (true, true, true, true) => write!(f, " above {min} and below {max}"),
            (true, false, false, _) => write!(f, " of at least {min}"),
            (true, false, true, _) => write!(f, " above {min}"),
            (false, true, _, false) => write!(f, " of at most {max}"),
            (false, true, _, true) => write!(f, " below {max}"),
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
            (POSITIVE_SHARE, [0.1, 1.0], [0.0, 1.1], " above 0 and up to 1"),
            (UNIT_INTERVAL, [0.0, 0.999], [-0.1, 1.0], " of at least 0 and below 1"),
            (AT_LEAST_ONE, [1.0, 1e18], [0.0, f64::INFINITY], " of at least 1"),
            (above(0.0), [1e-9, 5.0], [0.0, f64::NAN], " above 0"),
            (ANY, [-1.0, 1.0], [f64::NAN, f64::INFINITY], ""),
        ] {
            assert!(inside.iter().all(|&value| limit.contains(value)), "{limit}");
            assert!(outside.iter().all(|&value| !limit.contains(value)), "{limit}");
            assert_eq!(limit.to_string(), words);
        }
    }
}
