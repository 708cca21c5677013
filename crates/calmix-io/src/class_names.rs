//! Reads class names from an untrusted file.

use std::fmt;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};

/// The largest number of classes of a dataset or a model.
pub const MOST: usize = 1 << 20;

/// Reads a list of names and stops when there are too many: even a short file can list many empty names, and each takes
/// memory. For `#[serde(deserialize_with = "class_names::deserialize")]`.
///
/// # Errors
/// If it is not a list of strings, or there are more than [`MOST`].
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    struct ClassNames;
    impl<'de> Visitor<'de> for ClassNames {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "the names of at most {MOST} classes")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
            let mut names = Vec::new();
            while let Some(name) = list.next_element()? {
                if names.len() == MOST {
                    return Err(A::Error::invalid_length(MOST + 1, &self));
                }
                names.push(name);
            }
            Ok(names)
        }
    }
    from.deserialize_seq(ClassNames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_at_the_limit() {
        let list = |count: usize| format!("[{}]", vec!["\"\""; count].join(","));
        let read = |text: &str| deserialize(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(read(r#"["cat","dog"]"#).unwrap(), ["cat", "dog"]);
        assert_eq!(read(&list(MOST)).unwrap().len(), MOST);
        let error = read(&list(MOST + 1)).unwrap_err().to_string();
        assert!(error.contains("at most 1048576 classes"), "{error}");
    }
}
