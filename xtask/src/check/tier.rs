//! How much of the checks runs.

/// A tier of the checks. Each runs the steps of the one before it, and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// Before a commit: some minutes. Tests that link libtorch are left out.
    Quick,
    /// For every push: each pair of choices is tested, but not each combination.
    Usual,
    /// Every night: all combinations, and long series of kills and stops.
    Nightly,
}

impl Tier {
    /// Splits the arguments of `check` into the tier and the names of steps.
    pub(crate) fn parse<'a>(arguments: &'a [&'a str]) -> (Self, &'a [&'a str]) {
        match arguments {
            ["quick", steps @ ..] => (Self::Quick, steps),
            ["--nightly", steps @ ..] => (Self::Nightly, steps),
            steps => (Self::Usual, steps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tier_comes_before_the_steps() {
        assert_eq!(Tier::parse(&[]), (Tier::Usual, &[][..]));
        assert_eq!(Tier::parse(&["fmt"]), (Tier::Usual, &["fmt"][..]));
        assert_eq!(Tier::parse(&["quick"]), (Tier::Quick, &[][..]));
        assert_eq!(Tier::parse(&["--nightly", "tests"]), (Tier::Nightly, &["tests"][..]));
    }
}
