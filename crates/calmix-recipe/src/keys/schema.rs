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
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::String => json!({ "type": "string" }),
        Kind::Pattern(form) => json!({ "type": "string", "pattern": form.regex }),
        Kind::Int(most) => {
            let least = limit.min.max(0.0) as i64;
            // An editor does not need the limit of 64-bit integers.
            let most = (most < i64::MAX).then(|| (most as f64).min(limit.max) as i64);
            let mut schema = json!({ "type": "integer", "minimum": least });
            if let Some(most) = most {
                schema["maximum"] = most.into();
            }
            schema
        }
        Kind::Float => {
            let mut schema = json!({ "type": "number" });
            let ends = [
                (limit.min, limit.min_excluded, "exclusiveMinimum", "minimum"),
                (limit.max, limit.max_excluded, "exclusiveMaximum", "maximum"),
            ];
            for (end, open, without, with) in ends {
                if end.is_finite() {
                    schema[if open { without } else { with }] = end.into();
                }
            }
            schema
        }
        Kind::Enum(words) => {
            let words =
                words.iter().map(|word| json!({ "const": word.word, "description": word.description() }));
            json!({ "oneOf": words.collect::<Vec<_>>() })
        }
        Kind::FloatOr(words) => {
            json!({ "oneOf": [of(Kind::Float, limit), of(Kind::Enum(words), limit)] })
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
