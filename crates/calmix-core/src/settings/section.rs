//! The declaration of a section.

/// Declares a section of settings as a struct.
///
/// A line is a description, a class (`fixed` keys must match on resume, `free` ones may change, a `part` is a section
/// within), a key, its type, its default and its limits. `#[when(KEY is WORD | WORD)]`, `#[when(KEY is not WORD)]` and
/// the same with a literal set when the line has an effect. Users see the first paragraph of the documentation.
///
/// ```
/// use calmix_core::settings::limit::AT_LEAST_ONE;
/// use calmix_core::settings::{choice, section};
///
/// choice! {
///     /// How the labels to keep are chosen.
///     Keep {
///         /// `count` labels per class.
///         PerClass = "per-class",
///         /// Every label.
///         All = "all",
///     }
/// }
///
/// section! {
///     /// Which labels are kept.
///     Labels {
///         /// How the labels to keep are chosen.
///         fixed keep: Keep = Keep::PerClass;
///         /// The number of labels per class.
///         #[when(keep is Keep::PerClass)]
///         fixed count: u64 = 4, AT_LEAST_ONE;
///     }
/// }
///
/// assert_eq!(Labels::default(), Labels { keep: Keep::PerClass, count: 4 });
/// ```
#[macro_export]
macro_rules! section {
    ($(#[doc = $about:literal])+ $Name:ident {
        $(
            $(#[doc = $doc:literal])+
            $(#[when($($when:tt)+)])*
            $resume:ident $field:ident: $type:ty $(= $default:expr $(, $limit:expr)?)?;
        )+
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $Name {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl Default for $Name {
            fn default() -> Self {
                Self { $($field: $crate::section!(@default $($default)?),)+ }
            }
        }

        impl $crate::settings::SettingType for $Name {
            fn shape() -> $crate::settings::Shape {
                static FIELDS: ::std::sync::LazyLock<Vec<$crate::settings::Field>> =
                    ::std::sync::LazyLock::new(|| {
                        let mut fields = Vec::new();
                        $(<$type as $crate::settings::SettingType>::declare(
                            $crate::settings::Field {
                                name: stringify!($field),
                                shape: <$type as $crate::settings::SettingType>::shape,
                                limit: $crate::section!(@limit $($($limit)?)?),
                                resume: $crate::section!(@resume $resume),
                                when: const { &[$($crate::section!(@when $($when)+)),*] },
                                rule: None,
                                doc: &[$($doc),+],
                            },
                            &mut fields,
                        );)+
                        fields
                    });
                $crate::settings::Shape::Section(&FIELDS)
            }

            fn check(
                &self,
                name: &str,
                _: $crate::settings::limit::Limit,
            ) -> Result<(), $crate::error::CoreError> {
                $(
                    let limit = $crate::section!(@limit $($($limit)?)?);
                    $crate::settings::SettingType::check(&self.$field, stringify!($field), limit)
                        .map_err(|error| error.within(name))?;
                )+
                Ok(())
            }
        }
    };

    (@default) => { Default::default() };
    (@default $default:expr) => { $default };

    (@limit) => { $crate::settings::limit::ANY };
    (@limit $limit:expr) => { $limit };

    (@resume fixed) => { $crate::settings::Resume::MustMatch };
    (@resume free) => { $crate::settings::Resume::MayChange };
    // A section has no class of its own; this one is never read.
    (@resume part) => { $crate::settings::Resume::MustMatch };

    (@when $key:ident uses $number:ident in $Rule:ident) => {
        $crate::settings::When {
            key: stringify!($key),
            matches: |word| $Rule::uses(word, stringify!($number)),
        }
    };
    (@when $key:ident $(.$rest:ident)* is not $literal:literal) => {
        $crate::settings::When {
            key: concat!(stringify!($key) $(, ".", stringify!($rest))*),
            matches: |value| value != stringify!($literal),
        }
    };
    (@when $key:ident $(.$rest:ident)* is not $($choice:path)|+) => {
        $crate::settings::When {
            key: concat!(stringify!($key) $(, ".", stringify!($rest))*),
            matches: |value| ![$($choice.word()),+].contains(&value),
        }
    };
    (@when $key:ident $(.$rest:ident)* is $literal:literal) => {
        $crate::settings::When {
            key: concat!(stringify!($key) $(, ".", stringify!($rest))*),
            matches: |value| value == stringify!($literal),
        }
    };
    (@when $key:ident $(.$rest:ident)* is $($choice:path)|+) => {
        $crate::settings::When {
            key: concat!(stringify!($key) $(, ".", stringify!($rest))*),
            matches: |value| [$($choice.word()),+].contains(&value),
        }
    };
}
