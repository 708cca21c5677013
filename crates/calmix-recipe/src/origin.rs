//! Where a value came from.

use std::fmt;
use std::path::PathBuf;

use calmix_io::shown::shown;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// A text: a recipe of ours or a file.
    Text {
        /// Which one.
        place: Place,
        /// The line, from 1; nothing if it is about the whole.
        line: Option<usize>,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        variable: String,
    },
    /// An option of the command line.
    Option {
        /// Its name, such as `--device`.
        option: &'static str,
    },
    /// A setting on the command line.
    Set {
        /// Which one, from 1.
        number: usize,
    },
}

/// A text that holds values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A recipe of ours.
    Recipe(String),
    /// A reading of the paper.
    Preset(String),
    /// A family of augmentations.
    Family(String),
    /// Pretrained weights, or the `config.json` beside them.
    Pretrained(PathBuf),
    /// A file.
    File(PathBuf),
}

impl Origin {
    /// Whether somebody asked for the value in this very run.
    pub(super) fn is_asked_for(&self) -> bool {
        match self {
            // An option may set several keys, such as both seeds, where they have an effect.
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
            Self::Family(name) => write!(f, "augmentation {name}"),
            Self::Pretrained(path) | Self::File(path) => shown(path.display()).fmt(f),
        }
    }
}
