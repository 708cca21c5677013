//! One layer of a recipe: settings, each with where it came from.

use std::collections::BTreeMap;
use std::ffi::OsString;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::Recipe;
use super::field::{Field, Shape};
use super::nearest::nearest_key;
use super::origin::{Origin, Place};
use super::problem::{LISTED, Problem, What};
use super::value::{find, read};

/// A key, its value and where that came from.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) path: String,
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// The settings of one text, of the environment, or of one argument.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer {
    pub(super) settings: Vec<Setting>,
    pub(super) problems: Vec<Problem>,
    /// The recipe that the text is laid over, and where it says so.
    pub(super) extends: Option<(String, Origin)>,
}

impl Layer {
    /// The settings of a TOML text.
    pub(super) fn text(place: &Place, text: &str) -> Self {
        let ends: Vec<usize> =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        let line_of = |byte: usize| 1 + ends.partition_point(|&end| end < byte);
        let origin = |line| Origin::Text { place: place.clone(), line };
        let read = DeTable::parse(text).and_then(|lines| Ok((text.parse::<Table>()?, lines)));
        let (mut table, spans) = match read {
            Ok(read) => read,
            Err(error) => {
                let origin = origin(error.span().map(|span| line_of(span.start)));
                return Self::unreadable(origin, format!("not TOML: {}", error.message()));
            }
        };
        let mut lines = BTreeMap::new();
        locate(spans.get_ref(), "", &line_of, &mut lines);
        let mut layer = Self::default();
        let at = |path: &str| origin(lines.get(path).copied());
        if let Some(value) = table.remove("extends") {
            match value {
                Value::String(name) => layer.extends = Some((name, at("extends"))),
                other => layer.problem(
                    "extends",
                    at("extends"),
                    What::Expected {
                        value: other.to_string(),
                        expected: "the name of a recipe".into(),
                        nearest: None,
                    },
                ),
            }
        }
        layer.collect(Recipe::fields(), "", table, &at);
        layer
    }

    fn collect(&mut self, fields: &'static [Field], prefix: &str, table: Table, at: &dyn Fn(&str) -> Origin) {
        for (name, value) in table {
            let path = format!("{prefix}{name}");
            let origin = at(&path);
            let field = fields.iter().find(|field| field.name == name);
            match (field.map(|field| (field.shape)()), value) {
                (None, _) => self.no_key(&path, origin),
                (Some(Shape::Section(inner)), Value::Table(table)) => {
                    self.collect(inner, &format!("{path}."), table, at);
                }
                (Some(Shape::Section(_)), _) => self.problem(&path, origin, What::Section),
                (Some(Shape::Value(_)), value) => self.settings.push(Setting { path, value, origin }),
            }
        }
    }

    /// The settings of the environment: `CALMIX_TRAIN__STEPS` is `train.steps`, `CALMIX__PRESET` is `preset`.
    /// Other variables that begin alike are not ours to judge.
    pub(super) fn environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut ours: Vec<_> = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter_map(|(name, value)| Some((path_of(&name)?, name, value)))
            .collect();
        ours.sort();
        let mut layer = Self::default();
        for (path, variable, value) in ours {
            let origin = Origin::Environment { variable };
            match value.into_string() {
                Ok(text) => layer.assign(&path, &text, origin),
                Err(_) => layer.problem(&path, origin, What::Unreadable("not UTF-8".into())),
            }
        }
        layer
    }

    /// The setting of one argument, `key=value`.
    pub(super) fn set(number: usize, text: &str) -> Self {
        let origin = Origin::Set { number };
        let mut layer = Self::default();
        if let Some((path, value)) = text.split_once('=') {
            layer.assign(path.trim(), value.trim(), origin);
        } else {
            let problem = format!("`{text}` has no value; write `{text}=VALUE`");
            layer.problem(text, origin, What::Unreadable(problem));
        }
        layer
    }

    /// A layer that is nothing but a problem.
    pub(super) fn unreadable(origin: Origin, why: String) -> Self {
        let mut layer = Self::default();
        layer.problem("", origin, What::Unreadable(why));
        layer
    }

    fn assign(&mut self, path: &str, text: &str, origin: Origin) {
        match find(path).map(|field| (field.shape)()) {
            None => self.no_key(path, origin),
            Some(Shape::Section(_)) => self.problem(path, origin, What::Section),
            Some(Shape::Value(kind)) => {
                let value = read(text, kind);
                self.settings.push(Setting { path: path.to_owned(), value, origin });
            }
        }
    }

    fn no_key(&mut self, path: &str, origin: Origin) {
        // For those that are listed: a hostile file has thousands, and each takes its time.
        let is_listed = self.problems.len() < LISTED;
        let nearest = is_listed.then(|| nearest_key(path, Recipe::fields())).flatten();
        self.problem(path, origin, What::NoKey { nearest });
    }

    pub(super) fn problem(&mut self, path: &str, origin: Origin, what: What) {
        self.problems.push(Problem { path: path.to_owned(), origin, what });
    }
}

/// The key that an environment variable means.
fn path_of(variable: &str) -> Option<String> {
    let path = match variable.strip_prefix("CALMIX__") {
        Some(top) => top,
        None => variable.strip_prefix("CALMIX_").filter(|path| path.contains("__"))?,
    };
    Some(path.to_lowercase().replace("__", "."))
}

/// The line of every key of a document.
fn locate(
    table: &DeTable<'_>,
    prefix: &str,
    line_of: &dyn Fn(usize) -> usize,
    lines: &mut BTreeMap<String, usize>,
) {
    for (key, value) in table {
        let path = format!("{prefix}{}", key.get_ref());
        lines.insert(path.clone(), line_of(Spanned::span(key).start));
        if let DeValue::Table(inner) = value.get_ref() {
            locate(inner, &format!("{path}."), line_of, lines);
        }
    }
}
