//! Checks that a value is valid for its key.

use strsim::osa_distance;
use toml::Value;

use crate::Recipe;
use crate::field::limit::Limit;
use crate::field::{Field, Kind, Shape, leaves};
use crate::nearest::nearest;
use crate::problem::What;
use crate::value::read;

/// Returns the value as its key stores it, or what is wrong with it.
pub(crate) fn check(path: &str, field: &Field, value: &Value) -> Result<Value, What> {
    let Shape::Value(kind) = (field.shape)() else { return Err(What::Section) };
    fit(kind, field.limit, value).ok_or_else(|| What::Expected {
        value: value.to_string(),
        expected: expected(kind, field.limit),
        nearest: meant(kind, value).or_else(|| other_key(path, value)),
    })
}

/// Suggests a key with a similar name for which the value is valid: `train.steps` for `train.step = 10`.
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

/// Returns the value if it is valid; a whole number is also a number.
fn fit(kind: Kind, limit: Limit, value: &Value) -> Option<Value> {
    match (kind, value) {
        (Kind::Flag, Value::Boolean(_)) | (Kind::Text, Value::String(_)) => Some(value.clone()),
        (Kind::Whole(most), Value::Integer(number)) => {
            ((0..=most).contains(number) && limit.holds(*number as f64)).then(|| value.clone())
        }
        (Kind::Number, Value::Integer(number)) => fit(kind, limit, &Value::Float(*number as f64)),
        (Kind::Number, Value::Float(number)) => limit.holds(*number).then(|| value.clone()),
        (Kind::Word(words), Value::String(text)) => {
            words.iter().any(|word| word.word == text).then(|| value.clone())
        }
        (Kind::NumberOr(words), Value::String(_)) => fit(Kind::Word(words), limit, value),
        (Kind::NumberOr(_), _) => fit(Kind::Number, limit, value),
        (Kind::Form(form), Value::String(text)) => (form.has)(text).then(|| value.clone()),
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
        Kind::Flag => "true or false".into(),
        Kind::Whole(_) => format!("a whole number{}", within(kind, limit)),
        Kind::Number => format!("a number{limit}"),
        Kind::Text => "a text in quotes".into(),
        Kind::Word(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("\"{}\"", word.word)).collect();
            format!("one of {}", words.join(", "))
        }
        Kind::NumberOr(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("\"{}\"", word.word)).collect();
            format!("a number{limit}, or {}", words.join(", "))
        }
        Kind::Form(form) => form.expected.into(),
        Kind::List(of, length) => {
            let count = length.map(|length| format!("{length} ")).unwrap_or_default();
            let of = match of {
                Kind::Whole(_) => format!("whole numbers{}", within(*of, limit)),
                Kind::Number => format!("numbers{limit}"),
                _ => "texts".into(),
            };
            format!("a list of {count}{of}")
        }
    }
}

/// Returns the limit of a whole number, including the maximum of its type if that is small.
fn within(kind: Kind, limit: Limit) -> Limit {
    match kind {
        Kind::Whole(most) if most <= i64::from(u16::MAX) => {
            let most = (most as f64).min(limit.most);
            Limit { least: limit.least.max(0.0), ..limit }.to(most)
        }
        _ => Limit { least: limit.least.max(0.0), ..limit },
    }
}

fn meant(kind: Kind, value: &Value) -> Option<String> {
    match (kind, value) {
        (Kind::Word(words) | Kind::NumberOr(words), Value::String(text)) => {
            nearest(text, words.iter().map(|word| word.word)).map(|word| format!("\"{word}\""))
        }
        // `steps = 1e6` is a float to TOML.
        (Kind::Whole(most), Value::Float(number)) if number.fract() == 0.0 && *number >= 0.0 => {
            (*number <= most as f64).then(|| format!("{number}"))
        }
        _ => None,
    }
}
