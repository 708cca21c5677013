//! The declaration of a choice.

/// Declares a choice between words as an enum; `Name = Variant { … }` also gives it a default.
///
/// Users see the first paragraph of a word's documentation.
#[macro_export]
macro_rules! choice {
    ($(#[doc = $about:literal])+ $Name:ident $(= $default:ident)? {
        $($(#[doc = $doc:literal])+ $Variant:ident = $word:literal,)+
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        pub enum $Name {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $Variant,)+
        }

        $(impl Default for $Name {
            fn default() -> Self {
                Self::$default
            }
        })?

        impl $Name {
            /// All variants, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$Variant),+];

            /// Returns the word used in a recipe.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$Variant => $word,)+
                }
            }
        }

        impl ::std::fmt::Display for $Name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.word())
            }
        }

        impl ::std::str::FromStr for $Name {
            type Err = $crate::error::CoreError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let unknown = || $crate::error::CoreError::UnknownWord {
                    found: text.to_owned(),
                    expected: concat!("one of", $(" `", $word, "`",)+),
                };
                Self::ALL.iter().copied().find(|choice| choice.word() == text).ok_or_else(unknown)
            }
        }

        impl $crate::settings::SettingType for $Name {
            fn shape() -> $crate::settings::Shape {
                use $crate::settings::{Kind, Shape, Word};
                Shape::Value(Kind::Enum(&[$(Word { word: $word, doc: &[$($doc),+] }),+]))
            }
        }
    };
}
