//! The origin of a value.

use std::fmt;
use std::path::PathBuf;

use calmix_io::shown::shown;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The default: no layer sets the key.
    Default,
    /// A text: a built-in recipe or a file.
    Text {
        place: Place,
        /// The line, from 1; `None` for the text as a whole.
        line: Option<usize>,
    },
    Environment {
        variable: String,
    },
    /// An option of the command line.
    Option {
        /// Its name, such as `--device`.
        option: &'static str,
    },
    /// A `--set` on the command line.
    Set {
        /// Its position among all `--set`, from 1.
        number: usize,
    },
}

/// A text with values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Recipe(String),
    Preset(String),
    Family(String),
    /// Pretrained weights, or the `config.json` beside them.
    Pretrained(PathBuf),
    /// A decision by calmix, with its reason.
    Decided(String),
    File(PathBuf),
}

impl Origin {
    /// Returns whether the user set the value for this run.
    pub(super) fn is_from_user(&self) -> bool {
        match self {
            // An option may set several keys, such as both seeds, so no warning is due if one of them has no effect.
            Self::Default | Self::Option { .. } => false,
            Self::Text { place, .. } => matches!(place, Place::File(_)),
            Self::Environment { .. } | Self::Set { .. } => true,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Text { place, line: None } => place.fmt(f),
            Self::Text { place, line: Some(line) } => write!(f, "{place}, line {line}"),
            Self::Environment { variable } => f.write_str(variable),
            Self::Option { option } => f.write_str(option),
            Self::Set { number } => write!(f, "--set {number}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recipe(name) => write!(f, "recipe {name}"),
            Self::Preset(name) => write!(f, "preset {name}"),
            Self::Decided(by) => shown(by).fmt(f),
            Self::Family(name) => write!(f, "augmentation {name}"),
            Self::Pretrained(path) | Self::File(path) => shown(path.display()).fmt(f),
        }
    }
}
