//! Problems and warnings about a recipe.

use std::fmt;

use calmix_io::error::ErrorKind;
use calmix_io::shown::shown;

use crate::origin::Origin;

/// The maximum number of problems to list; a file with more is probably not a recipe.
pub(super) const LISTED: usize = 50;

/// All problems of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct RecipeError {
    /// The problems, at least one.
    pub problems: Vec<Problem>,
}

impl RecipeError {
    /// Returns the error for something other than a key: a name, or a file as a whole.
    pub(crate) fn of(why: String) -> Self {
        let problem = Problem { path: String::new(), origin: Origin::Default, what: What::Unreadable(why) };
        Self { problems: vec![problem] }
    }

    /// Returns the kind of error: the user has to correct the recipe.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Mistake
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub path: String,
    pub origin: Origin,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    NoKey {
        /// The key that the user probably meant.
        nearest: Option<String>,
    },
    NoRecipe {
        /// The recipe that the user probably meant, otherwise a list of all recipes.
        hint: String,
    },
    /// A value in place of a section.
    Section,
    /// A value that is invalid for the key.
    Expected {
        value: String,
        /// A description of the valid values.
        expected: String,
        /// The value or key that the user probably meant.
        nearest: Option<String>,
    },
    /// A value that contradicts another.
    Rule {
        value: String,
        /// The contradiction, and what to do about it.
        rule: String,
    },
    /// A required value that is not set.
    Missing {
        /// How to set it.
        hint: String,
    },
    /// A key that is set under both its old and its present name.
    Renamed { old: String },
    /// A file or setting that cannot be read, with the message.
    Unreadable(String),
}

/// A value that is allowed but probably not intended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub path: String,
    pub value: String,
    pub origin: Origin,
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
            What::Renamed { old } => {
                write!(f, "`{path}` was called `{old}`, and both are set; keep only `{path}`")
            }
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
    /// Writes one problem per line.
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

/// Wraps an error that earlier checks should have caught.
pub(crate) fn unexpected(error: &dyn fmt::Display) -> RecipeError {
    RecipeError::of(format!("the recipe does not pass its own checks (a bug in calmix): {error}"))
}
