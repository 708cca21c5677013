//! The variables of a launcher as texts and as numbers, and what may be wrong with them.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// What is wrong with the variables of a launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchError {
    /// A variable is missing although another one is set.
    Missing {
        /// The missing variable.
        missing: &'static str,
        /// The variable that is set.
        set: &'static str,
    },
    /// The value of a variable is invalid.
    Value {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        why: String,
    },
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { missing, set } => write!(
                f,
                "{set} is set, but {missing} is not: a launcher sets both; to run a single process, unset {set}"
            ),
            Self::Value { name, value, why } => write!(f, "{name}={value} is invalid: {why}"),
        }
    }
}

impl Error for LaunchError {}

/// The variables of the environment, as texts and as numbers.
pub(super) struct LaunchVariables<'a> {
    pub(super) lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl LaunchVariables<'_> {
    pub(super) fn text(&self, name: &str) -> Option<String> {
        (self.lookup)(name)
    }

    pub(super) fn number<N: FromStr>(&self, name: &'static str) -> Result<Option<N>, LaunchError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match value.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => {
                Err(LaunchError::Value { name, value, why: "it is not a number in the valid range".into() })
            }
        }
    }

    pub(super) fn needed<N: FromStr>(&self, name: &'static str, set: &'static str) -> Result<N, LaunchError> {
        self.number(name)?.ok_or(LaunchError::Missing { missing: name, set })
    }

    pub(super) fn needed_text(&self, name: &'static str, set: &'static str) -> Result<String, LaunchError> {
        self.text(name).ok_or(LaunchError::Missing { missing: name, set })
    }
}
