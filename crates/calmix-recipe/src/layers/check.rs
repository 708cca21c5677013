//! Checks that a value is valid for its key.

use strsim::osa_distance;
use toml::Value;

use crate::Recipe;
use crate::field::limit::Limit;
use crate::field::{Field, Kind, Shape, leaves};
use crate::nearest::nearest;
use crate::problem::What;
use crate::value::read;

/// Converts the value to the type of its key, or returns what is wrong with it.
pub(crate) fn check(path: &str, field: &Field, value: &Value) -> Result<Value, What> {
    let Shape::Value(kind) = (field.shape)() else { return Err(What::Section) };
    fit(kind, field.limit, value).ok_or_else(|| What::Expected {
        value: value.to_string(),
        expected: expected(kind, field.limit),
        nearest: meant(kind, value).or_else(|| other_key(path, value)),
    })
}

/// Suggests a key with a similar name that accepts the value: `train.steps` for `train.step = 10`.
fn other_key(path: &str, value: &Value) -> Option<String> {
    let fits = |(other, field): &(String, &'static Field)| {
        let Shape::Value(kind) = (field.shape)() else { return false };
        // A word from the command line may be a valid number for another key.
        let value = value.as_str().map_or_else(|| value.clone(), |text| read(text, kind));
        let letters = osa_distance(path, other);
        (1..=2).contains(&letters) && fit(kind, field.limit, &value).is_some()
    };
    leaves(Recipe::fields()).into_iter().find(fits).map(|(other, _)| format!("the key `{other}`"))
}

/// Converts the value if it is valid; an integer is also a valid float.
fn fit(kind: Kind, limit: Limit, value: &Value) -> Option<Value> {
    match (kind, value) {
        (Kind::Bool, Value::Boolean(_)) | (Kind::String, Value::String(_)) => Some(value.clone()),
        (Kind::Int(max), Value::Integer(number)) => {
            ((0..=max).contains(number) && limit.contains(*number as f64)).then(|| value.clone())
        }
        (Kind::Float, Value::Integer(number)) => fit(kind, limit, &Value::Float(*number as f64)),
        (Kind::Float, Value::Float(number)) => limit.contains(*number).then(|| value.clone()),
        (Kind::Enum(words), Value::String(text)) => {
            words.iter().any(|word| word.word == text).then(|| value.clone())
        }
        (Kind::FloatOr(words), Value::String(_)) => fit(Kind::Enum(words), limit, value),
        (Kind::FloatOr(_), _) => fit(Kind::Float, limit, value),
        (Kind::Pattern(pattern), Value::String(text)) => (pattern.matches)(text).then(|| value.clone()),
        (Kind::List(of, length), Value::Array(items)) => {
            let right = length.is_none_or(|length| length == items.len());
            let items = items.iter().map(|item| fit(*of, limit, item));
            items.collect::<Option<_>>().filter(|_| right).map(Value::Array)
        }
        _ => None,
    }
}

/// Describes the valid values of a key, for messages.
pub(crate) fn expected(kind: Kind, limit: Limit) -> String {
    match kind {
        Kind::Bool => "true or false".into(),
        Kind::Int(_) => format!("a whole number{}", within(kind, limit)),
        Kind::Float => format!("a number{limit}"),
        Kind::String => "a text in quotes".into(),
        Kind::Enum(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("\"{}\"", word.word)).collect();
            format!("one of {}", words.join(", "))
        }
        Kind::FloatOr(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("\"{}\"", word.word)).collect();
            format!("a number{limit}, or {}", words.join(", "))
        }
        Kind::Pattern(pattern) => pattern.expected.into(),
        Kind::List(of, length) => {
            let count = length.map(|length| format!("{length} ")).unwrap_or_default();
            let of = match of {
                Kind::Int(_) => format!("whole numbers{}", within(*of, limit)),
                Kind::Float => format!("numbers{limit}"),
                _ => "texts".into(),
            };
            format!("a list of {count}{of}")
        }
    }
}

/// Returns the limit of an integer, including the maximum of its type if that is small.
fn within(kind: Kind, limit: Limit) -> Limit {
    match kind {
        Kind::Int(max) if max <= i64::from(u16::MAX) => {
            let max = (max as f64).min(limit.max);
            Limit { min: limit.min.max(0.0), ..limit }.to(max)
        }
        _ => Limit { min: limit.min.max(0.0), ..limit },
    }
}

fn meant(kind: Kind, value: &Value) -> Option<String> {
    match (kind, value) {
        (Kind::Enum(words) | Kind::FloatOr(words), Value::String(text)) => {
            nearest(text, words.iter().map(|word| word.word)).map(|word| format!("\"{word}\""))
        }
        // `steps = 1e6` is a float to TOML.
        (Kind::Int(max), Value::Float(number)) if number.fract() == 0.0 && *number >= 0.0 => {
            (*number <= max as f64).then(|| format!("{number}"))
        }
        _ => None,
    }
}
