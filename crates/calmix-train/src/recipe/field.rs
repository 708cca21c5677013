//! What a key of the recipe is: its name, what it may hold, and whether a resumed run may change it.
//!
//! A section is declared once, by `section!`: each line gives a key its description, its default, its limits and
//! its class on resume. The struct, the check of every value, the hints for unknown keys, the table for resuming
//! and the schema for editors all come from that line, so none of them can lag behind another. That is why there
//! is no derive for the schema here: it would know the types and nothing of the rest, and it would have to be
//! derived in the crates below as well.

use super::limit::Limit;

/// One key of the recipe.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name within its section.
    pub name: &'static str,
    /// What it may hold.
    pub shape: fn() -> Shape,
    /// Between what its numbers lie.
    pub limit: Limit,
    /// Whether a resumed run may change it.
    pub resume: Resume,
    pub(super) doc: &'static [&'static str],
}

/// What is behind a key.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// More keys.
    Section(&'static [Field]),
    /// A value.
    Value(Kind),
}

/// The kinds of values.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// True or false.
    Flag,
    /// A whole number from zero to this.
    Whole(i64),
    /// Any finite number.
    Number,
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [Word]),
    /// A word of a form.
    Form(Form),
    /// Several values of one kind; exactly so many, if a number is given.
    List(&'static Kind, Option<usize>),
}

/// A word that a key may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub word: &'static str,
    pub(super) doc: &'static [&'static str],
}

/// Words that cannot be listed.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// The form in words.
    pub expected: &'static str,
    /// The form as a regular expression, for the schema.
    pub pattern: &'static str,
    /// Whether a text has it.
    pub has: fn(&str) -> bool,
}

/// Whether a resumed run may change a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// No: the run would be another one.
    MustMatch,
    /// Yes: what the run learns does not depend on it.
    MayChange,
}

/// A type that a key of the recipe can have.
pub trait Shaped {
    /// What values of the type look like.
    fn shape() -> Shape;
}

impl Field {
    /// The description, in one line.
    pub fn description(&self) -> String {
        joined(self.doc)
    }
}

impl Word {
    /// The description, in one line.
    pub fn description(&self) -> String {
        joined(self.doc)
    }
}

fn joined(doc: &[&str]) -> String {
    doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Every key below `fields` that holds a value, with its path, in the order of declaration.
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

macro_rules! shaped {
    ($($type:ty => $kind:expr;)+) => {
        $(impl Shaped for $type {
            fn shape() -> Shape {
                Shape::Value($kind)
            }
        })+
    };
}

shaped! {
    bool => Kind::Flag;
    u32 => Kind::Whole(4_294_967_295);
    // TOML's whole numbers end here.
    u64 => Kind::Whole(i64::MAX);
    f64 => Kind::Number;
    String => Kind::Text;
    Vec<String> => Kind::List(&Kind::Text, None);
    [f64; 2] => Kind::List(&Kind::Number, Some(2));
    [f64; 3] => Kind::List(&Kind::Number, Some(3));
    [u8; 3] => Kind::List(&Kind::Whole(255), Some(3));
}

/// Declares a section: `fixed` keys must match on resume, `free` ones may change, a `part` is a section within.
macro_rules! section {
    ($(#[doc = $about:literal])+ $Name:ident {
        $($(#[doc = $doc:literal])+ $resume:ident $field:ident: $type:ty = $default:expr $(, $limit:expr)?;)+
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $Name {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl Default for $Name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl $crate::recipe::field::Shaped for $Name {
            fn shape() -> $crate::recipe::field::Shape {
                use $crate::recipe::field::{Field, Shape, Shaped, resume};
                use $crate::recipe::limit::limit;
                const FIELDS: &[Field] = &[$(Field {
                    name: stringify!($field),
                    shape: <$type as Shaped>::shape,
                    limit: limit!($($limit)?),
                    resume: resume!($resume),
                    doc: &[$($doc),+],
                }),+];
                Shape::Section(FIELDS)
            }
        }
    };
}

macro_rules! resume {
    (fixed) => {
        $crate::recipe::field::Resume::MustMatch
    };
    (free) => {
        $crate::recipe::field::Resume::MayChange
    };
    // A section has no class of its own; this one is never read.
    (part) => {
        $crate::recipe::field::Resume::MustMatch
    };
}

/// Declares a choice between words, each with its description.
macro_rules! choice {
    ($(#[doc = $about:literal])+ $Name:ident {
        $($(#[doc = $doc:literal])+ $Variant:ident = $word:literal,)+
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $Name {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $Variant,)+
        }

        impl $Name {
            /// All of them, in order.
            pub const ALL: &[Self] = &[$(Self::$Variant),+];

            /// The word in a recipe.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$Variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }

        impl std::str::FromStr for $Name {
            type Err = $crate::recipe::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let unknown = || $crate::recipe::UnknownWord {
                    found: text.to_owned(),
                    expected: concat!("one of", $(" `", $word, "`",)+),
                };
                Self::ALL.iter().copied().find(|choice| choice.word() == text).ok_or_else(unknown)
            }
        }

        impl $crate::recipe::field::Shaped for $Name {
            fn shape() -> $crate::recipe::field::Shape {
                use $crate::recipe::field::{Kind, Shape, Word};
                Shape::Value(Kind::Word(&[$(Word { word: $word, doc: &[$($doc),+] }),+]))
            }
        }
    };
}

/// Describes the words of an enum that belongs to a crate below; a variant that is added there is missed here.
macro_rules! words {
    ($($Name:ty { $($Variant:ident = $word:literal: $doc:literal,)+ })+) => {
        $(impl $crate::recipe::field::Shaped for $Name {
            fn shape() -> $crate::recipe::field::Shape {
                use $crate::recipe::field::{Kind, Shape, Word};
                const _: fn($Name) = |every| match every {
                    $(<$Name>::$Variant => (),)+
                };
                Shape::Value(Kind::Word(&[$(Word { word: $word, doc: &[$doc] }),+]))
            }
        })+
    };
}

pub(crate) use {choice, resume, section, words};
