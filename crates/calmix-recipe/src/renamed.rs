//! Keys and words that were renamed. The old names are still accepted: in files, in the environment, on the command line,
//! and in the recipes of earlier runs.

use toml::Value;

/// The old name of each renamed key, and its present name.
const KEYS: &[(&str, &str)] = &[("train.shards", "train.micro_batches")];

/// A key, one of its old words, and the present word.
const WORDS: &[(&str, &str, &str)] = &[("train.batch_norm", "shard", "micro-batch")];

pub(crate) fn present_key(path: &str) -> &str {
    KEYS.iter().find(|(old, _)| *old == path).map_or(path, |(_, present)| present)
}

/// Replaces an old word of a key.
pub(crate) fn present_word(path: &str, value: Value) -> Value {
    let renamed = WORDS.iter().find(|(key, old, _)| *key == path && value.as_str() == Some(old));
    renamed.map_or(value, |(_, _, present)| Value::String((*present).to_owned()))
}

/// Returns the original name of a key.
pub(crate) fn first_key(path: &str) -> &str {
    KEYS.iter().find(|(_, present)| *present == path).map_or(path, |(old, _)| old)
}

/// Returns the original word for a value of a key.
pub(crate) fn first_word(path: &str, value: &Value) -> Value {
    let renamed = WORDS.iter().find(|(key, _, present)| *key == path && value.as_str() == Some(present));
    renamed.map_or_else(|| value.clone(), |(_, old, _)| Value::String((*old).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::find;

    #[test]
    fn renamed_keys_exist_under_their_present_name_alone() {
        for (old, present) in KEYS {
            assert!(find(old).is_none() && find(present).is_some(), "{old}");
        }
        for (key, old, present) in WORDS {
            assert_eq!(present_word(key, (*old).into()), (*present).into());
            assert!(find(key).is_some() && first_word(key, &(*present).into()) == (*old).into(), "{key}");
        }
    }
}
