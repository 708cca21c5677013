//! Every limit and every word of every key.

use calmix_recipe::field::{Field, Kind, Shape, leaves};
use calmix_recipe::{Layers, Recipe, What};

use super::set;

fn values() -> Vec<(String, &'static Field, Kind)> {
    leaves(Recipe::fields())
        .into_iter()
        .map(|(path, field)| match (field.shape)() {
            Shape::Value(kind) => (path, field, kind),
            Shape::Section(_) => panic!("{path} is not a value"),
        })
        .collect()
}

/// Returns whether the value itself is refused, whatever other problems there are.
fn is_refused(path: &str, value: &str) -> bool {
    let refused = set(&[&format!("{path}={value}")]).err().into_iter().flat_map(|error| error.problems);
    refused.into_iter().any(|problem| problem.path == path && matches!(problem.what, What::Expected { .. }))
}

#[test]
fn every_key_is_described_and_named_alike() {
    for (path, field, kind) in values() {
        assert!(field.description().ends_with('.'), "{path}: {}", field.description());
        assert!(field.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{path}");
        // The environment separates by two of them.
        assert!(!path.contains("__"), "{path}");
        if let Kind::Enum(words) = kind {
            assert!(words.iter().all(|word| word.description().ends_with('.')), "{path}");
        }
    }
}

#[test]
fn every_limit_holds_at_both_ends() {
    let mut ends = 0;
    for (path, field, kind) in values() {
        let (whole, list) = match kind {
            Kind::Int(_) => (true, None),
            Kind::Float => (false, None),
            Kind::List(Kind::Int(_), length) => (true, Some(length.unwrap_or(1))),
            Kind::List(Kind::Float, length) => (false, Some(length.unwrap_or(1))),
            _ => continue,
        };
        let written = |value: f64| {
            let one = if whole { format!("{value}") } else { format!("{value:?}") };
            list.map_or(one.clone(), |length| vec![one; length].join(","))
        };
        let small = if whole { 1.0 } else { 1e-9 };
        let limit = field.limit;
        for (end, open, outwards) in
            [(limit.min, limit.min_excluded, -small), (limit.max, limit.max_excluded, small)]
        {
            if !end.is_finite() {
                continue;
            }
            ends += 1;
            assert!(is_refused(&path, &written(end + outwards)), "{path} = {}", end + outwards);
            assert_eq!(is_refused(&path, &written(end)), open, "{path} = {end}");
            assert!(!is_refused(&path, &written(end - outwards)), "{path} = {}", end - outwards);
        }
        for wrong in ["-1e-300", "nan", "inf", "text", "true", "\"1\""] {
            let allowed = !whole && limit.contains(wrong.parse().unwrap_or(f64::NAN));
            assert_eq!(is_refused(&path, wrong), !allowed, "{path} = {wrong}");
        }
        // One more than the largest number of the type.
        let most = match kind {
            Kind::Int(most) => most,
            Kind::List(Kind::Int(most), _) => *most,
            _ => i64::MAX,
        };
        if most < i64::MAX {
            let above = (most + 1).to_string();
            assert!(is_refused(&path, &list.map_or(above.clone(), |length| vec![above; length].join(","))));
        }
    }
    assert!(ends > 60, "{ends}");
}

#[test]
fn every_word_is_taken_and_given_back() {
    let mut taken = 0;
    for (path, _, kind) in values() {
        let (Kind::Enum(words) | Kind::FloatOr(words)) = kind else { continue };
        for word in words {
            // Alone it may contradict something else; as a word it is always known.
            let context: &[&str] = match path.as_str() {
                "selection" => &["labels.validation=0.5"],
                "labels.keep" => &["labels.file=split.json"],
                "method.base_loss" => &["train.step=joint"],
                "preset" if word.word == "calibrated" => &["network.train=head"],
                _ => &[],
            };
            let setting = format!("{path}={}", word.word);
            let settings: Vec<_> = context.iter().copied().chain([setting.as_str()]).collect();
            match set(&settings) {
                Ok(resolved) => {
                    // A word that has no effect is put back to the default, with a warning.
                    let unused = resolved.warnings.iter().any(|warning| warning.path == path);
                    let given = resolved.value(&path).unwrap().as_str() == Some(word.word);
                    assert!(given || unused, "{setting}: {:?}", resolved.value(&path));
                    taken += 1;
                }
                Err(error) => panic!("{setting}: {error}"),
            }
        }
        assert!(is_refused(&path, "no-such-word"), "{path}");
    }
    assert!(taken > 90, "{taken}");
}

/// The document that is stored with a run contains every key.
#[test]
fn every_key_is_written() {
    let document: toml::Table = Layers::new().resolve().unwrap().to_toml().parse().unwrap();
    for (path, ..) in values() {
        let mut value = None;
        let mut table = Some(&document);
        for name in path.split('.') {
            value = table.and_then(|table| table.get(name));
            table = value.and_then(toml::Value::as_table);
        }
        assert!(value.is_some_and(|value| !value.is_table()), "{path}");
    }
}
