//! The values of a recipe, key by key.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::Recipe;
use crate::field::{Field, Kind, Shape};

/// Every value of a recipe, by its path.
pub(super) type Leaves = BTreeMap<String, Value>;

/// Finds the key at a path.
pub(super) fn find(path: &str) -> Option<&'static Field> {
    let mut fields = Recipe::fields();
    let mut names = path.split('.').peekable();
    while let Some(name) = names.next() {
        let field = fields.iter().find(|field| field.name == name)?;
        if names.peek().is_none() {
            return Some(field);
        }
        match (field.shape)() {
            Shape::Section(inner) => fields = inner,
            Shape::Value(_) => return None,
        }
    }
    None
}

/// Returns the values of a recipe, by path.
pub(super) fn of(recipe: &Recipe) -> Result<Leaves, toml::ser::Error> {
    let mut leaves = Leaves::new();
    flatten(Recipe::fields(), "", &Table::try_from(recipe)?, &mut leaves);
    Ok(leaves)
}

fn flatten(fields: &'static [Field], prefix: &str, table: &Table, leaves: &mut Leaves) {
    for field in fields {
        let path = format!("{prefix}{}", field.name);
        // The keys of a rule are serialised within its value.
        let table = field.rule.map_or(Some(table), |rule| table.get(rule)?.as_table());
        match (table.and_then(|table| table.get(field.name)), (field.shape)()) {
            (Some(Value::Table(table)), Shape::Section(inner)) => {
                flatten(inner, &format!("{path}."), table, leaves);
            }
            (Some(value), Shape::Value(_)) => {
                leaves.insert(path, value.clone());
            }
            _ => {}
        }
    }
}

/// Returns the recipe with these values.
pub(super) fn recipe(leaves: &Leaves) -> Result<Recipe, toml::de::Error> {
    Value::Table(nested(Recipe::fields(), "", leaves)).try_into()
}

fn nested(fields: &'static [Field], prefix: &str, leaves: &Leaves) -> Table {
    let mut table = Table::new();
    for field in fields {
        let path = format!("{prefix}{}", field.name);
        let value = match (field.shape)() {
            Shape::Section(inner) => Some(Value::Table(nested(inner, &format!("{path}."), leaves))),
            Shape::Value(_) => leaves.get(&path).cloned(),
        };
        let Some(value) = value else { continue };
        let mut table = &mut table;
        if let Some(rule) = field.rule {
            let keys = table.entry(rule).or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(keys) = keys else { continue };
            table = keys;
        }
        table.insert(field.name.to_owned(), value);
    }
    table
}

/// Returns the values as a JSON document with an object for each section.
pub(super) fn json(leaves: &Leaves) -> serde_json::Value {
    let mut document = serde_json::Map::new();
    for (path, value) in leaves {
        let (sections, key) = path.rsplit_once('.').unwrap_or(("", path));
        let mut object = &mut document;
        for section in sections.split('.').filter(|section| !section.is_empty()) {
            let inner = object.entry(section).or_insert_with(|| serde_json::Map::new().into());
            let Some(inner) = inner.as_object_mut() else { return serde_json::Value::Null };
            object = inner;
        }
        object.insert(key.to_owned(), serde_json::to_value(value).unwrap_or_default());
    }
    document.into()
}

/// Writes the values as a TOML document, in the order of declaration; `note` becomes a comment after a value.
pub(super) fn document(leaves: &Leaves, note: &dyn Fn(&str) -> Option<String>) -> String {
    let mut text = String::new();
    write(Recipe::fields(), "", leaves, note, &mut text);
    text
}

fn write(
    fields: &'static [Field],
    section: &str,
    leaves: &Leaves,
    note: &dyn Fn(&str) -> Option<String>,
    text: &mut String,
) {
    let path = |field: &Field| {
        if section.is_empty() { field.name.to_owned() } else { format!("{section}.{}", field.name) }
    };
    let (sections, values): (Vec<_>, Vec<_>) =
        fields.iter().partition(|field| matches!((field.shape)(), Shape::Section(_)));
    if !section.is_empty() && !values.is_empty() {
        text.extend(["\n[", section, "]\n"]);
    }
    for field in values {
        let path = path(field);
        if let Some(value) = leaves.get(&path) {
            let note = note(&path).map(|note| format!("  # {note}")).unwrap_or_default();
            text.extend([field.name, " = ", &value.to_string(), &note, "\n"]);
        }
    }
    for field in sections {
        if let Shape::Section(inner) = (field.shape)() {
            write(inner, &path(field), leaves, note, text);
        }
    }
}

/// Reads a value from the environment or the command line, where words need no quotes and lists no brackets.
pub(super) fn read(text: &str, kind: Kind) -> Value {
    let bare = || Value::String(text.to_owned());
    match kind {
        Kind::String | Kind::Enum(_) | Kind::Pattern(_) => {
            toml_value(text).filter(Value::is_str).unwrap_or_else(bare)
        }
        Kind::List(of, _) => toml_value(text).filter(Value::is_array).unwrap_or_else(|| {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            Value::Array(items.map(|item| read(item, *of)).collect())
        }),
        Kind::Bool | Kind::Int(_) | Kind::Float | Kind::FloatOr(_) => toml_value(text).unwrap_or_else(bare),
    }
}

fn toml_value(text: &str) -> Option<Value> {
    let document = format!("value = {text}").parse::<Table>().ok()?;
    // A line break in the text could add more keys.
    if document.len() == 1 { document.into_iter().next().map(|(_, value)| value) } else { None }
}
