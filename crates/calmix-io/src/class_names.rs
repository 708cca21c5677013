//! Limits on class names, both in labels of a dataset and in files of a run.

use std::fmt;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};

/// The maximum number of classes of a dataset or a model.
pub const MAX_CLASSES: usize = 1 << 20;

/// The maximum length of a class name, in bytes. Every file of predictions contains the names, so their length bounds the
/// size of these files.
pub const MAX_NAME_BYTES: usize = 1024;

/// Checks the length of a name.
///
/// # Errors
/// If it has more than [`MAX_NAME_BYTES`], as a message with the start of the name.
pub fn check(name: &str) -> Result<(), String> {
    if name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    let start: String = name.chars().take(40).collect();
    Err(format!("the class name {start:?}… has {} bytes, expected at most {MAX_NAME_BYTES}", name.len()))
}

/// The maximum total length of all names, in bytes: `result.json` and `model.json` contain them, and have at most 16 MiB.
pub const MAX_TOTAL_BYTES: usize = 8 << 20;

/// Checks the length of each name, and the total.
///
/// # Errors
/// If one has more than [`MAX_NAME_BYTES`], or all have more than [`MAX_TOTAL_BYTES`].
pub fn check_all<'a>(names: impl IntoIterator<Item = &'a String>) -> Result<(), String> {
    let mut total = 0_usize;
    for name in names {
        check(name)?;
        total = total.saturating_add(name.len());
        if total > MAX_TOTAL_BYTES {
            return Err(format!("the class names have more than {MAX_TOTAL_BYTES} bytes together"));
        }
    }
    Ok(())
}

/// Deserialises a list of names and stops when there are too many: even a short file can list many empty names, and each
/// takes memory. For `#[serde(deserialize_with = "class_names::deserialize")]`.
///
/// # Errors
/// If it is not a list of strings, there are more than [`MAX_CLASSES`], or they are too long.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    struct ClassNames;
    impl<'de> Visitor<'de> for ClassNames {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "the names of at most {MAX_CLASSES} classes")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
            let mut names = Vec::new();
            while let Some(name) = list.next_element::<String>()? {
                if names.len() == MAX_CLASSES {
                    return Err(A::Error::invalid_length(MAX_CLASSES + 1, &self));
                }
                check(&name).map_err(A::Error::custom)?;
                names.push(name);
            }
            check_all(&names).map_err(A::Error::custom)?;
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
        assert_eq!(read(&list(MAX_CLASSES)).unwrap().len(), MAX_CLASSES);
        let error = read(&list(MAX_CLASSES + 1)).unwrap_err().to_string();
        assert!(error.contains("at most 1048576 classes"), "{error}");
    }

    #[test]
    fn long_names_are_refused() {
        let read = |bytes: usize| {
            let list = format!("[{:?}]", "x".repeat(bytes));
            deserialize(&mut serde_json::Deserializer::from_str(&list))
        };
        assert_eq!(read(MAX_NAME_BYTES).unwrap().len(), 1);
        let many = vec!["x".repeat(MAX_NAME_BYTES); MAX_TOTAL_BYTES / MAX_NAME_BYTES + 1];
        assert!(check_all(&many[1..]).is_ok());
        assert_eq!(check_all(&many).unwrap_err(), "the class names have more than 8388608 bytes together");
        let error = read(MAX_NAME_BYTES + 1).unwrap_err().to_string();
        assert!(error.contains("… has 1025 bytes, expected at most 1024"), "{error}");
    }
}
