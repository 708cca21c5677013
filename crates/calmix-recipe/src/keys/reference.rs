//! The reference of all keys, as Markdown: docs/reference/keys.md. Everything in it comes from the declarations.

use toml::Value;

use crate::Recipe;
use crate::field::{Field, Kind, Resume, Shape, When};
use crate::layers::check::expected;
use crate::renamed::first_key;
use crate::value::{self, Leaves, find};

const INTRODUCTION: &str = "\
# Keys of a recipe

<!-- Written by `CALMIX_BLESS=1 cargo nextest run -p calmix-recipe reference`: change the declarations of the keys, not this page. -->

Set a key in a file (`[train]`, then `steps = 2000`), by an environment variable (`CALMIX_TRAIN__STEPS=2000`) or by `--set
train.steps=2000`. `calmix inspect RECIPE` prints every value with its origin. The defaults apply without a recipe.

*Resume* shows whether `calmix resume` may change a key. A key that has no effect, given the values of others, is reset to its
default, with a warning if you set it.
";

/// Writes the page docs/reference/keys.md.
pub fn reference() -> String {
    let defaults = value::of(&Recipe::default()).unwrap_or_default();
    let mut text = INTRODUCTION.to_owned();
    section(None, Recipe::fields(), "", &defaults, &mut text);
    text
}

fn section(
    about: Option<&Field>,
    fields: &'static [Field],
    path: &str,
    defaults: &Leaves,
    text: &mut String,
) {
    let (sections, values): (Vec<&Field>, Vec<&Field>) =
        fields.iter().partition(|field| matches!((field.shape)(), Shape::Section(_)));
    let title = if path.is_empty() { "Top level".to_owned() } else { format!("`{path}`") };
    text.extend(["\n## ", &title, "\n"]);
    if let Some(field) = about {
        let outer = path.rsplit_once('.').map_or("", |(outer, _)| outer);
        text.extend(["\n", &field.description(), &conditions(field.when.iter(), outer), "\n"]);
    }
    if !values.is_empty() {
        text.push_str("\n| key | value | default | resume | meaning |\n|---|---|---|---|---|\n");
    }
    for field in values {
        let key = joined(path, field.name);
        // The numbers of a rule depend on what the rule depends on.
        let of_rule =
            fields.iter().filter(|other| Some(other.name) == field.rule && other.name != field.name);
        let when = of_rule.flat_map(|rule| rule.when).chain(field.when);
        let default = defaults.get(&key).map(Value::to_string).unwrap_or_default();
        let resume = if field.resume == Resume::MayChange { "may change" } else { "" };
        let meaning =
            format!("{}{}{}{}", field.description(), words(field), old_name(&key), conditions(when, path));
        let (values, meaning) = (in_cell(&values_of(field)), in_cell(&meaning));
        let cells = ["| `", &key, "` | ", &values, " | `", &default, "` | ", resume, " | ", &meaning, " |\n"];
        text.extend(cells);
    }
    for field in sections {
        if let Shape::Section(inner) = (field.shape)() {
            section(Some(field), inner, &joined(path, field.name), defaults, text);
        }
    }
}

/// Describes the values that a key may have.
fn values_of(field: &Field) -> String {
    match (field.shape)() {
        Shape::Value(Kind::Enum(_)) => "a word".to_owned(),
        Shape::Value(kind) => expected(kind, field.limit),
        Shape::Section(_) => String::new(),
    }
}

/// Lists the words of a key, each with its meaning.
fn words(field: &Field) -> String {
    let Shape::Value(Kind::Enum(words)) = (field.shape)() else { return String::new() };
    let each = words.iter().map(|word| format!("<br>`{}`: {}", word.word, word.description()));
    each.collect::<Vec<_>>().concat()
}

/// Names the key that a renamed key used to be.
fn old_name(key: &str) -> String {
    let old = first_key(key);
    if old == key { String::new() } else { format!(" The old name `{old}` is still read.") }
}

/// Describes when a key has an effect.
fn conditions<'a>(when: impl Iterator<Item = &'a When>, section: &str) -> String {
    let conditions: Vec<String> = when.filter_map(|when| condition(when, section)).collect();
    if conditions.is_empty() { String::new() } else { format!(" *Only if {}.*", conditions.join(" and ")) }
}

fn condition(when: &When, section: &str) -> Option<String> {
    let key = joined(section, when.key);
    let Shape::Value(kind) = (find(&key)?.shape)() else { return None };
    let candidates: Vec<&str> = match kind {
        Kind::Enum(words) => words.iter().map(|word| word.word).collect(),
        Kind::Bool => vec!["true", "false"],
        // A condition on a number only ever excludes one special value.
        _ => vec!["0", "1", "0.0", "1.0"],
    };
    let (held, broken): (Vec<&str>, Vec<&str>) =
        candidates.into_iter().partition(|value| (when.matches)(value));
    let named =
        |values: &[&str]| values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(" or ");
    let is_number = matches!(kind, Kind::Int(_) | Kind::Float);
    let (verb, values) =
        if is_number || broken.len() < held.len() { ("is not", broken) } else { ("is", held) };
    Some(format!("`{key}` {verb} {}", named(&values)))
}

fn joined(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") }
}

/// Escapes a text for a table cell, which cannot contain bars or line breaks.
fn in_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
