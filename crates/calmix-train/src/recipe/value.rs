//! The values of a recipe, key by key.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::Recipe;
use super::field::{Field, Kind, Shape};

/// Every value of a recipe, by its path.
pub(super) type Leaves = BTreeMap<String, Value>;

/// The key at a path.
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

/// The values of a recipe.
pub(super) fn of(recipe: &Recipe) -> Result<Leaves, toml::ser::Error> {
    let mut leaves = Leaves::new();
    flatten(Table::try_from(recipe)?, "", &mut leaves);
    Ok(leaves)
}

fn flatten(table: Table, prefix: &str, leaves: &mut Leaves) {
    for (name, value) in table {
        let path = format!("{prefix}{name}");
        match value {
            Value::Table(inner) => flatten(inner, &format!("{path}."), leaves),
            value => {
                leaves.insert(path, value);
            }
        }
    }
}

/// The recipe with these values.
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
        table.extend(value.map(|value| (field.name.to_owned(), value)));
    }
    table
}

/// The values as a TOML document, in the order in which keys are declared; `note` becomes a comment after a value.
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

/// A value from outside TOML: from the environment or the command line. Words need no quotes, lists no brackets.
pub(super) fn read(text: &str, kind: Kind) -> Value {
    let bare = || Value::String(text.to_owned());
    match kind {
        Kind::Text | Kind::Word(_) | Kind::Form(_) => {
            toml_value(text).filter(Value::is_str).unwrap_or_else(bare)
        }
        Kind::List(of, _) => toml_value(text).filter(Value::is_array).unwrap_or_else(|| {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            Value::Array(items.map(|item| read(item, *of)).collect())
        }),
        Kind::Flag | Kind::Whole(_) | Kind::Number => toml_value(text).unwrap_or_else(bare),
    }
}

fn toml_value(text: &str) -> Option<Value> {
    let document = format!("value = {text}").parse::<Table>().ok()?;
    // A line break in the text could bring in more keys.
    if document.len() == 1 { document.into_iter().next().map(|(_, value)| value) } else { None }
}
