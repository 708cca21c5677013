//! One layer of a recipe: settings with their origins.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use crate::Recipe;
use crate::field::{Kind, Shape};
use crate::nearest::nearest_key;
use crate::origin::{Origin, Place};
use crate::problem::{LISTED, Problem, What};
use crate::renamed::{first_key, present_key, present_word};
use crate::value::{find, read};

/// A key and its value, with the origin of the value.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) path: String,
    /// The key as written: its present or old name.
    pub(crate) written: String,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
    /// The comment beside it in the text.
    pub(crate) comment: Option<String>,
}

/// The settings of one text, of the environment, or of one command-line argument.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer {
    pub(crate) settings: Vec<Setting>,
    pub(crate) problems: Vec<Problem>,
    /// The recipe that the text extends, and the place that names it.
    pub(crate) extends: Option<(String, Origin)>,
}

impl Layer {
    /// Reads the settings of a TOML text.
    pub(crate) fn text(place: &Place, text: &str) -> Self {
        let ends: Vec<usize> =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        let line_of = |byte: usize| 1 + ends.partition_point(|&end| end < byte);
        let origin = |line| Origin::Text { place: place.clone(), line };
        let read = DeTable::parse(text).and_then(|lines| Ok((text.parse::<Table>()?, lines)));
        let (mut table, spans) = match read {
            Ok(read) => read,
            Err(error) => {
                let origin = origin(error.span().map(|span| line_of(span.start)));
                return Self::unreadable(origin, format!("invalid TOML: {}", error.message()));
            }
        };
        let mut spans_of = BTreeMap::new();
        locate(spans.get_ref(), "", &mut spans_of);
        let mut layer = Self::default();
        let at = |path: &str| origin(spans_of.get(path).map(|span: &Range<usize>| line_of(span.start)));
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
        layer.collect("", table, &at);
        for setting in &mut layer.settings {
            setting.comment = spans_of.get(&setting.written).and_then(|span| comment(text, span));
        }
        layer
    }

    fn collect(&mut self, prefix: &str, table: Table, at: &dyn Fn(&str) -> Origin) {
        for (name, value) in table {
            let path = format!("{prefix}{name}");
            match (find(&path).map(|field| (field.shape)()), value) {
                (Some(Shape::Section(_)), Value::Table(table)) => {
                    self.collect(&format!("{path}."), table, at);
                }
                (_, value) => self.add(&path, at(&path), |_| value),
            }
        }
    }

    /// Returns a layer of keys and values with the same origin.
    pub(crate) fn values(origin: &Origin, values: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut layer = Self::default();
        for (path, value) in values {
            layer.add(&path, origin.clone(), |_| value);
        }
        layer
    }

    /// Reads the settings in the environment: `CALMIX_TRAIN__STEPS` sets `train.steps`, `CALMIX__PRESET` sets `preset`.
    /// Other variables that start with `CALMIX_` are ignored.
    pub(crate) fn environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
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
                Ok(text) => layer.add(&path, origin, |kind| read(&text, kind)),
                Err(_) => layer.problem(&path, origin, What::Unreadable("the value is not UTF-8".into())),
            }
        }
        layer
    }

    /// Returns a layer with the key that a command-line option sets.
    pub(crate) fn option(option: &'static str, path: &str, value: &str) -> Self {
        let mut layer = Self::default();
        layer.add(path, Origin::Option { option }, |kind| read(value, kind));
        layer
    }

    /// Adds the setting of one argument, `key=value`.
    pub(crate) fn set(&mut self, text: &str, origin: Origin) {
        if let Some((path, value)) = text.split_once('=') {
            self.add(path.trim(), origin, |kind| read(value.trim(), kind));
        } else {
            let problem = format!("`{text}` has no value; write `{text}=VALUE`");
            self.problem(text, origin, What::Unreadable(problem));
        }
    }

    /// Returns a layer that contains only a problem.
    pub(crate) fn unreadable(origin: Origin, why: String) -> Self {
        let mut layer = Self::default();
        layer.problem("", origin, What::Unreadable(why));
        layer
    }

    /// Adds a setting, whose key and value may have old names; `value` makes the value for the kind of the key.
    pub(crate) fn add(&mut self, written: &str, origin: Origin, value: impl FnOnce(Kind) -> Value) {
        let path = present_key(written);
        let kind = match find(path).map(|field| (field.shape)()) {
            None => return self.no_key(path, origin),
            Some(Shape::Section(_)) => return self.problem(path, origin, What::Section),
            Some(Shape::Value(kind)) => kind,
        };
        let (path, written) = (path.to_owned(), written.to_owned());
        let is_other_name = |setting: &Setting| setting.path == path && setting.written != written;
        if self.settings.iter().any(is_other_name) {
            let old = first_key(&path).to_owned();
            return self.problem(&path, origin, What::Renamed { old });
        }
        let value = present_word(&path, value(kind));
        self.settings.push(Setting { path, written, value, origin, comment: None });
    }

    fn no_key(&mut self, path: &str, origin: Origin) {
        // Only for problems that are listed: a hostile file may have thousands of unknown keys, and each search takes time.
        let is_listed = self.problems.len() < LISTED;
        let nearest = is_listed.then(|| nearest_key(path, Recipe::fields())).flatten();
        self.problem(path, origin, What::NoKey { nearest });
    }

    pub(crate) fn problem(&mut self, path: &str, origin: Origin, what: What) {
        self.problems.push(Problem { path: path.to_owned(), origin, what });
    }
}

/// Returns the key that an environment variable sets.
fn path_of(variable: &str) -> Option<String> {
    let path = match variable.strip_prefix("CALMIX__") {
        Some(top) => top,
        None => variable.strip_prefix("CALMIX_").filter(|path| path.contains("__"))?,
    };
    Some(path.to_lowercase().replace("__", "."))
}

/// Collects the start of every key in a document and the end of its value.
fn locate(table: &DeTable<'_>, prefix: &str, spans: &mut BTreeMap<String, Range<usize>>) {
    for (key, value) in table {
        let path = format!("{prefix}{}", key.get_ref());
        spans.insert(path.clone(), Spanned::span(key).start..Spanned::span(value).end);
        if let DeValue::Table(inner) = value.get_ref() {
            locate(inner, &format!("{path}."), spans);
        }
    }
}

/// Returns the comment on a key: the lines directly above it, and the comment after its value.
fn comment(text: &str, span: &Range<usize>) -> Option<String> {
    let words = |line: &str| line.trim().strip_prefix('#').map(|words| words.trim().to_owned());
    let (before, behind) = (text.get(..span.start)?, text.get(span.end..)?);
    // Skips the part of its own line before the key.
    let above = before.lines().rev().skip(usize::from(!before.ends_with('\n')));
    let mut lines: Vec<String> = above.map_while(words).collect();
    lines.reverse();
    lines.extend(behind.lines().next().and_then(words));
    Some(lines.join(" ")).filter(|lines| !lines.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_stay_with_their_keys() {
        let text = "# about the file\n\n[train] # a section\n# of the paper\n# and of others\nsteps = 5 # few\nbatch = 2\n\
                    [method]\nfixmatch.threshold = 0.5 # low\n# between\n\nunlabelled_weight = 1.0\n\
                    [dataset]\npath = \"a # b\"\nmean = [\n  0.1, # red\n  0.2, 0.3]  # all\n";
        let layer = Layer::text(&Place::Preset("test".to_owned()), text);
        assert_eq!(layer.problems, []);
        let comment_on = |path: &str| {
            let setting = layer.settings.iter().find(|setting| setting.path == path).unwrap();
            setting.comment.clone().unwrap_or_default()
        };
        assert_eq!(comment_on("train.steps"), "of the paper and of others few");
        assert_eq!(
            [comment_on("train.batch"), comment_on("dataset.path"), comment_on("method.unlabelled_weight")],
            ["", "", ""]
        );
        assert_eq!([comment_on("method.fixmatch.threshold"), comment_on("dataset.mean")], ["low", "all"]);
    }
}
