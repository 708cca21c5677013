//! The schema for editors, which accepts and refuses the same values as the program, and the reference of all keys.

use std::path::Path;

use calmix_recipe::{Layers, builtin, reference, schema};
use serde_json::{Value, json};

/// The part of JSON Schema that ours is written in; anything else is a mistake in it.
fn fits(schema: &Value, value: &Value) -> bool {
    schema.as_object().unwrap().iter().all(|(rule, of)| match rule.as_str() {
        "$schema" | "title" | "description" | "default" => true,
        "type" => match of.as_str().unwrap() {
            "object" => value.is_object(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "array" => value.is_array(),
            other => panic!("{other}"),
        },
        "properties" => value.as_object().is_some_and(|object| {
            object.iter().all(|(key, value)| of.get(key).is_none_or(|schema| fits(schema, value)))
        }),
        "additionalProperties" => {
            assert_eq!(of, false);
            let known = |key: &String| schema["properties"].get(key).is_some();
            value.as_object().is_some_and(|object| object.keys().all(known))
        }
        "enum" => of.as_array().unwrap().contains(value),
        "const" => of == value,
        "oneOf" => of.as_array().unwrap().iter().filter(|schema| fits(schema, value)).count() == 1,
        "pattern" => {
            let starts: &[&str] = match of.as_str().unwrap() {
                "^(auto|cpu|cuda(:[0-9]+)?|mps)$" => &["auto", "cpu", "cuda", "mps"],
                "^(wrn-[0-9]+-[0-9]+|resnet-?50|tf_efficientnet_lite[012])$" => {
                    &["wrn-", "resnet50", "tf_efficientnet_lite"]
                }
                other => panic!("{other}"),
            };
            value.as_str().is_some_and(|text| starts.iter().any(|start| text.starts_with(start)))
        }
        "items" => value.as_array().is_some_and(|items| items.iter().all(|item| fits(of, item))),
        "minItems" => value.as_array().is_some_and(|items| items.len() as u64 >= of.as_u64().unwrap()),
        "maxItems" => value.as_array().is_some_and(|items| items.len() as u64 <= of.as_u64().unwrap()),
        _ => {
            let (end, number) = (of.as_f64().unwrap(), value.as_f64().unwrap_or(f64::NAN));
            match rule.as_str() {
                "minimum" => number >= end,
                "maximum" => number <= end,
                "exclusiveMinimum" => number > end,
                "exclusiveMaximum" => number < end,
                other => panic!("{other}"),
            }
        }
    })
}

fn json_of(text: &str) -> Value {
    serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()
}

#[test]
fn every_recipe_fits() {
    let schema = schema();
    for recipe in builtin() {
        assert!(fits(&schema, &json_of(recipe.text)), "{}", recipe.name);
        let resolved = Layers::new().recipe(recipe.name).resolve().unwrap();
        assert!(fits(&schema, &json_of(&resolved.to_toml())), "{}", recipe.name);
    }
}

#[test]
fn what_the_program_refuses_does_not_fit() {
    let schema = schema();
    for text in [
        "stpes = 1",
        "train.steps = 0",
        "train.steps = \"1\"",
        "train.batch = 65537",
        "train = 1",
        "ema.decay = 1.0",
        "labels.share = 0.0",
        "labels.validation = 1.0",
        "labels.validation = \"sixth\"",
        "method.base = \"FixMatch\"",
        "dataset.mean = [0.5]",
        "augment.cutout.fill = [0, 0, 256]",
        "extends = \"nothing\"",
        "optimiser.nesterov = 1",
    ] {
        assert!(!fits(&schema, &json_of(text)), "{text}");
        assert!(super::file(text).is_err(), "{text}");
    }
}

#[test]
fn it_describes_keys_words_and_defaults() {
    let schema = schema();
    let train = &schema["properties"]["train"]["properties"];
    assert_eq!(
        train["batch"],
        json!({
            "type": "integer", "minimum": 1, "maximum": 65536, "default": 64,
            "description": "B: labelled images in a batch."
        })
    );
    let concat = &train["step"]["oneOf"][0];
    assert_eq!(concat["const"], "concat");
    assert!(concat["description"].as_str().unwrap().contains("17% more arithmetic than joint"), "{concat}");
}

/// `CALMIX_BLESS=1` writes the file.
#[test]
fn schema_file_is_that_of_the_declarations() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/recipe.schema.json");
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("CALMIX_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/reference/recipe.schema.json is not what the declarations say now:\n{text}"
    );
}

/// `CALMIX_BLESS=1` writes the page.
#[test]
fn the_reference_is_that_of_the_declarations() {
    let (page, path) =
        (reference(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/keys.md"));
    if std::env::var_os("CALMIX_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/reference/keys.md is not what the declarations say now:\n{page}");
    // Every key, with its limits, its default and its condition.
    let resolved = Layers::new().resolve().unwrap();
    assert!(resolved.origins().keys().all(|key| page.contains(&format!("\n| `{key}` | "))));
    for part in [
        "| `train.batch` | a whole number from 1 to 65536 | `64` |  | B: labelled images in a batch. |",
        "| `train.threads` | a whole number from 0 to 4096 | `0` | may change | ",
        "*Only if `labels.keep` is `per-class` or `total`.*",
        "*Only if `train.micro_batches` is not `1`.*",
        "<br>`concat`: ",
    ] {
        assert!(page.contains(part), "{part}");
    }
}
