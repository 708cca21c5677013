//! The declaration of a rule.

/// Declares a rule: an enum whose variants may carry parameters, which are numbers or sections.
///
/// In a recipe a rule is flat: one key for the word and one for each parameter, in the section where the rule is used. A
/// parameter has an effect only with the words of its variants.
///
/// ```
/// use calmix_core::margin::{Averaging, AveragingKeys};
///
/// let mut keys = AveragingKeys::from(Averaging::default());
/// assert_eq!((keys.averaging.word(), keys.delta, keys.rho), ("cumulative", 0.997, 0.9));
/// (keys.averaging, keys.rho) = ("exponential".parse()?, 0.5);
/// assert_eq!(Averaging::from(keys), Averaging::Exponential { rho: 0.5 });
/// # Ok::<(), calmix_core::error::CoreError>(())
/// ```
#[macro_export]
macro_rules! rule {
    (
        $(#[doc = $about:literal])+
        $Name:ident {
            $(
                $(#[doc = $doc:literal])+
                $Variant:ident $(($tuple:ident: $tuple_type:ty))? $({ $($part:ident: $part_type:ty),+ })?
                    = $word:literal,
            )+
        }
        $Keys:ident {
            $key:ident: $Word:ident = $default:ident;
            $($(#[doc = $number_doc:literal])+ $number:ident: $type:ty $(= $value:expr, $limit:expr)?;)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum $Name {
            $(
                $(#[doc = $doc])+
                $Variant $(($tuple_type))? $({
                    $(#[doc = concat!("The key `", stringify!($part), "`.")] $part: $part_type,)+
                })?,
            )+
        }

        $crate::choice! {
            /// The words of a rule.
            $Word {
                $($(#[doc = $doc])+ $Variant = $word,)+
            }
        }

        $crate::section! {
            /// The keys of a rule: its word, and the numbers and sections of all its words.
            $Keys {
                /// The chosen word.
                fixed $key: $Word = $Word::$default;
                $(
                    $(#[doc = $number_doc])+
                    #[when($key uses $number in $Name)]
                    fixed $number: $type $(= $value, $limit)?;
                )+
            }
        }

        impl $Name {
            /// Returns the word of the variant.
            pub fn word(self) -> $Word {
                $Keys::from(self).$key
            }

            /// Returns whether a word has this number or section.
            fn uses(word: &str, number: &str) -> bool {
                let numbers: &[&str] = match word {
                    $($word => &[$(stringify!($tuple))? $($(stringify!($part)),+)?],)+
                    _ => &[],
                };
                numbers.contains(&number)
            }
        }

        impl From<$Name> for $Keys {
            fn from(rule: $Name) -> Self {
                let mut keys = Self::default();
                match rule {
                    $($Name::$Variant $(($tuple))? $({ $($part),+ })? => {
                        keys.$key = $Word::$Variant;
                        $(keys.$tuple = $tuple;)?
                        $($(keys.$part = $part;)+)?
                    })+
                }
                keys
            }
        }

        impl From<$Keys> for $Name {
            fn from(keys: $Keys) -> Self {
                match keys.$key {
                    $($Word::$Variant => Self::$Variant $((keys.$tuple))? $({ $($part: keys.$part),+ })?,)+
                }
            }
        }

        impl Default for $Name {
            fn default() -> Self {
                $Keys::default().into()
            }
        }

        impl ::serde::Serialize for $Name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                ::serde::Serialize::serialize(&$Keys::from(*self), serializer)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $Name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <$Keys as ::serde::Deserialize>::deserialize(deserializer).map(Self::from)
            }
        }

        impl $crate::settings::SettingType for $Name {
            fn shape() -> $crate::settings::Shape {
                <$Word as $crate::settings::SettingType>::shape()
            }

            fn declare(field: $crate::settings::Field, fields: &mut Vec<$crate::settings::Field>) {
                use $crate::settings::{Field, SettingType, Shape};
                let rule = Some(field.name);
                if let Shape::Section([_, numbers @ ..]) = <$Keys as SettingType>::shape() {
                    fields.push(Field { rule, ..field });
                    fields.extend(numbers.iter().map(|number| Field { rule, resume: field.resume, ..*number }));
                }
            }

            fn check(
                &self,
                _: &str,
                limit: $crate::settings::limit::Limit,
            ) -> Result<(), $crate::error::CoreError> {
                $crate::settings::SettingType::check(&$Keys::from(*self), "", limit)
            }
        }
    };
}
