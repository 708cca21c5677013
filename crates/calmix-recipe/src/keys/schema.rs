//! The JSON Schema of a recipe, for editors that complete and check TOML.

use serde_json::{Map, Value, json};

use crate::builtin::builtin;
use crate::field::limit::Limit;
use crate::field::{Field, Kind, Shape};
use crate::{Recipe, value};

/// Returns the schema of a recipe file (draft 2020-12), with every description and default.
pub fn schema() -> Value {
    let defaults = value::of(&Recipe::default()).unwrap_or_default();
    let mut schema = section(Recipe::fields(), "", &defaults);
    let names: Vec<_> = builtin().iter().map(|recipe| recipe.name).collect();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "calmix recipe".into();
    schema["properties"]["extends"] =
        json!({ "description": "The built-in recipe that this one extends.", "enum": names });
    schema
}

fn section(fields: &'static [Field], prefix: &str, defaults: &value::Leaves) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| {
            let path = format!("{prefix}{}", field.name);
            let mut schema = match (field.shape)() {
                Shape::Section(inner) => section(inner, &format!("{path}."), defaults),
                Shape::Value(kind) => of(kind, field.limit),
            };
            schema["description"] = field.description().into();
            if let Some(default) = defaults.get(&path) {
                schema["default"] = json!(default);
            }
            (field.name.to_owned(), schema)
        })
        .collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn of(kind: Kind, limit: Limit) -> Value {
    match kind {
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Text => json!({ "type": "string" }),
        Kind::Form(form) => json!({ "type": "string", "pattern": form.pattern }),
        Kind::Whole(most) => {
            let least = limit.least.max(0.0) as i64;
            // An editor does not need the limit of 64-bit integers.
            let most = (most < i64::MAX).then(|| (most as f64).min(limit.most) as i64);
            let mut schema = json!({ "type": "integer", "minimum": least });
            if let Some(most) = most {
                schema["maximum"] = most.into();
            }
            schema
        }
        Kind::Number => {
            let mut schema = json!({ "type": "number" });
            let ends = [
                (limit.least, limit.above, "exclusiveMinimum", "minimum"),
                (limit.most, limit.below, "exclusiveMaximum", "maximum"),
            ];
            for (end, open, without, with) in ends {
                if end.is_finite() {
                    schema[if open { without } else { with }] = end.into();
                }
            }
            schema
        }
        Kind::Word(words) => {
            let words =
                words.iter().map(|word| json!({ "const": word.word, "description": word.description() }));
            json!({ "oneOf": words.collect::<Vec<_>>() })
        }
        Kind::NumberOr(words) => {
            json!({ "oneOf": [of(Kind::Number, limit), of(Kind::Word(words), limit)] })
        }
        Kind::List(of_kind, length) => {
            let mut schema = json!({ "type": "array", "items": of(*of_kind, limit) });
            if let Some(length) = length {
                schema["minItems"] = length.into();
                schema["maxItems"] = length.into();
            }
            schema
        }
    }
}
