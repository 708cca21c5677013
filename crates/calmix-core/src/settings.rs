//! Settings, each declared once.
//!
//! [`section!`](crate::section) declares settings as a struct: each line gives a key its description, its type, its default,
//! its limits, whether a resumed run may change it, and when it has an effect. [`choice!`](crate::choice) declares plain enums,
//! and [`rule!`](crate::rule) enums whose variants carry parameters. The structs and enums, the check of every number, and the
//! list of keys that a recipe reads all come from these lines, so none of them can lag behind another.
//!
//! This is not left to a configuration crate, because none of them tracks the origin of each value, suggests the nearest key
//! for a misspelt one and knows which keys a resumed run may change.
//!
//! ```
//! use calmix_core::pseudo::FixMatch;
//! use calmix_core::settings::limit::ANY;
//! use calmix_core::settings::{SettingType, Shape};
//!
//! let Shape::Section(fields) = FixMatch::shape() else { unreachable!() };
//! assert_eq!((fields[0].name, fields[0].limit.to_string()), ("threshold", " from 0 to 1".to_owned()));
//! let error = FixMatch { threshold: 1.5 }.check("base", ANY).unwrap_err();
//! assert_eq!(error.to_string(), "base.threshold = 1.5 is out of range: expected a number from 0 to 1");
//! ```

mod choice;
pub mod limit;
mod rule;
mod section;

use crate::error::CoreError;
pub use crate::{choice, rule, section};
use limit::Limit;

/// The declaration of one key.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name within the section.
    pub name: &'static str,
    /// The kind of its value, or the keys of its section.
    pub shape: fn() -> Shape,
    /// The range of its numbers.
    pub limit: Limit,
    /// Whether a resumed run may change it.
    pub resume: Resume,
    /// The conditions under which it has an effect. Those of a section apply to all its keys except the ones they refer to.
    pub when: &'static [When],
    /// The rule that it belongs to, if any; its value is serialised inside that of the rule.
    pub rule: Option<&'static str>,
    /// The lines of its documentation.
    pub doc: &'static [&'static str],
}

/// A condition on another key.
#[derive(Debug, Clone, Copy)]
pub struct When {
    /// The path of the other key, relative to the section of the key that depends on it.
    pub key: &'static str,
    /// Returns whether a value of the other key, as text, meets the condition.
    pub matches: fn(&str) -> bool,
}

/// The content of a key: a section or a value.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A section with keys of its own.
    Section(&'static [Field]),
    /// A value of this kind.
    Value(Kind),
}

/// The kinds of values.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// True or false.
    Bool,
    /// A whole number from zero to this maximum.
    Int(i64),
    /// Any finite number.
    Float,
    /// Any text.
    String,
    /// One of these words.
    Enum(&'static [Word]),
    /// Any finite number, or one of these words.
    FloatOr(&'static [Word]),
    /// A word that matches a pattern.
    Pattern(Pattern),
    /// A list of values of one kind, of exactly this length if one is given.
    List(&'static Kind, Option<usize>),
}

/// A word that a key may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// The word as it is written in a recipe.
    pub word: &'static str,
    /// The lines of its documentation.
    pub doc: &'static [&'static str],
}

/// A pattern of words that are too many to list.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    /// A description of the pattern, for messages.
    pub expected: &'static str,
    /// The regular expression, for the JSON schema.
    pub regex: &'static str,
    /// Returns whether a text matches the pattern.
    pub matches: fn(&str) -> bool,
}

/// The rule whether a resumed run may change a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// No: it would be a different run.
    MustMatch,
    /// Yes: the result of the training does not depend on it.
    MayChange,
}

/// A type that a setting can have.
pub trait SettingType {
    /// Returns the kind of values of the type, or the keys of its section.
    fn shape() -> Shape;

    /// Adds the keys of a setting of this type to those of its section: one key, and for a rule also its parameters.
    fn declare(field: Field, fields: &mut Vec<Field>) {
        fields.push(field);
    }

    /// Checks the numbers of a setting: a single value against `limit`, the keys of a section against their own limits.
    ///
    /// # Errors
    /// Returns the first number that is out of range.
    fn check(&self, name: &str, limit: Limit) -> Result<(), CoreError> {
        let _ = (name, limit);
        Ok(())
    }
}

impl Field {
    /// Returns the first paragraph of the documentation, in one line.
    pub fn description(&self) -> String {
        first_paragraph(self.doc)
    }
}

impl Word {
    /// Returns the first paragraph of the documentation, in one line.
    pub fn description(&self) -> String {
        first_paragraph(self.doc)
    }
}

fn first_paragraph(doc: &[&str]) -> String {
    let lines = doc.iter().map(|line| line.trim());
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns every key below `fields` that holds a value, with its path, in the order of declaration.
pub fn leaves(fields: &'static [Field]) -> Vec<(String, &'static Field)> {
    fields
        .iter()
        .flat_map(|field| match (field.shape)() {
            Shape::Value(_) => vec![(field.name.to_owned(), field)],
            Shape::Section(inner) => leaves(inner)
                .into_iter()
                .map(|(path, leaf)| (format!("{}.{path}", field.name), leaf))
                .collect(),
        })
        .collect()
}

impl Limit {
    /// Checks the number of the setting `name`.
    ///
    /// # Errors
    /// If it lies outside the range.
    pub fn check(self, name: &str, value: f64) -> Result<(), CoreError> {
        let out_of_range = || CoreError::OutOfRange { setting: name.to_owned(), value, limit: self };
        if self.contains(value) { Ok(()) } else { Err(out_of_range()) }
    }
}

macro_rules! values {
    ($($type:ty => $kind:expr $(, $number:expr)?;)+) => {
        $(impl SettingType for $type {
            fn shape() -> Shape {
                Shape::Value($kind)
            }

            $(fn check(&self, name: &str, limit: Limit) -> Result<(), CoreError> {
                let number: fn(&$type) -> f64 = $number;
                limit.check(name, number(self))
            })?
        })+
    };
}

values! {
    bool => Kind::Bool;
    u32 => Kind::Int(4_294_967_295), |&number| f64::from(number);
    // TOML integers are signed 64-bit numbers.
    u64 => Kind::Int(i64::MAX), |&number| number as f64;
    f64 => Kind::Float, |&number| number;
    String => Kind::String;
    Vec<String> => Kind::List(&Kind::String, None);
    [f64; 2] => Kind::List(&Kind::Float, Some(2));
    [f64; 3] => Kind::List(&Kind::Float, Some(3));
    [u8; 3] => Kind::List(&Kind::Int(255), Some(3));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mixup::Guidance;

    fn guidance() -> &'static [Field] {
        match Guidance::shape() {
            Shape::Section(fields) => fields,
            Shape::Value(_) => &[],
        }
    }

    #[test]
    fn rule_keys_are_flat_in_their_section() {
        let names: Vec<_> = guidance().iter().map(|field| field.name).collect();
        let [averaging, split] = [["averaging", "delta", "rho"], ["split", "quantile", "momentum"]];
        let dissimilar = ["dissimilar", "fraction", "count"];
        assert_eq!(names, [&averaging[..], &["apm_from"], &split, &["space"], &dissimilar].concat());
    }

    #[test]
    fn parameters_apply_with_their_words() {
        let applies = |name: &str, word: &str| {
            let field = guidance().iter().find(|field| field.name == name).unwrap();
            field.when.iter().all(|when| (when.matches)(word))
        };
        assert!(applies("delta", "cumulative") && !applies("delta", "exponential"));
        assert!(applies("momentum", "running") && !applies("momentum", "rank"));
        assert!(applies("space", "count") && !applies("space", "any"));
        assert!(applies("split", "any word"));
    }
}
