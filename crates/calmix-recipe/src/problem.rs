//! What is wrong with a recipe, and what is merely odd.

use std::fmt;

use calmix_io::shown::shown;

use crate::origin::Origin;

/// Problems that are listed; a recipe with more has no typing error but is something else.
pub(super) const LISTED: usize = 50;

/// Everything that is wrong with a recipe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct RecipeError {
    /// At least one problem.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong with a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key.
    pub path: String,
    /// Where its value came from.
    pub origin: Origin,
    /// What is wrong.
    pub what: What,
}

/// What can be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// There is no such key.
    NoKey {
        /// The one that was perhaps meant.
        nearest: Option<String>,
    },
    /// There is no such recipe.
    NoRecipe {
        /// The one that was perhaps meant, otherwise all that there are.
        hint: String,
    },
    /// A value where keys belong.
    Section,
    /// A value that the key cannot have.
    Expected {
        /// The value.
        value: String,
        /// What it should have been.
        expected: String,
        /// The word that was perhaps meant.
        nearest: Option<String>,
    },
    /// A value that contradicts another.
    Rule {
        /// The value.
        value: String,
        /// What it contradicts and what to do.
        rule: String,
    },
    /// A value that nobody gave.
    Missing {
        /// How to give it.
        hint: String,
    },
    /// Something that cannot be read.
    Unreadable(String),
}

/// Something that is allowed, and probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The key.
    pub path: String,
    /// Its value.
    pub value: String,
    /// Where that came from.
    pub origin: Origin,
    /// What is odd about it.
    pub why: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, origin, what } = self;
        let path = shown(path);
        if *origin != Origin::Default {
            write!(f, "{origin}: ")?;
        }
        match what {
            What::NoKey { nearest: Some(nearest) } => {
                write!(f, "there is no key `{path}`; did you mean `{nearest}`?")
            }
            What::NoKey { nearest: None } => write!(f, "there is no key `{path}`"),
            What::NoRecipe { hint } => write!(f, "there is no recipe `{path}`; {hint}"),
            What::Section => write!(f, "`{path}` is a section; set one of its keys instead"),
            What::Expected { value, expected, nearest } => {
                write!(f, "{path} = {}: expected {expected}", shown(value))?;
                nearest.as_ref().map_or(Ok(()), |nearest| write!(f, "; did you mean {nearest}?"))
            }
            What::Rule { value, rule } => write!(f, "{path} = {}: {rule}", shown(value)),
            What::Missing { hint } => write!(f, "{path} is not set; {hint}"),
            What::Unreadable(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, value, origin, why } = self;
        write!(f, "{path} = {} ({origin}) {why}", shown(value))
    }
}

impl fmt::Display for RecipeError {
    /// One problem a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            if n == LISTED {
                return write!(f, "\nand {} more", self.problems.len() - LISTED);
            }
            if n > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}
