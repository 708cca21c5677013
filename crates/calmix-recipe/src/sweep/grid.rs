//! A grid of a sweep: every combination of its lists.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::{SEEDS, may_change, must_match};

/// A key with its values, and whether these are part of the runs' names (as those of a list are).
#[derive(Debug)]
struct GridAxis {
    key: String,
    values: Vec<Value>,
    is_named: bool,
}

/// One `[[grid]]` of a sweep file.
#[derive(Debug)]
pub(super) struct Grid {
    name: Option<String>,
    recipes: Vec<String>,
    seeds: Vec<i64>,
    axes: Vec<GridAxis>,
}

impl Grid {
    /// Reads a grid; its own keys take precedence over those of `all`.
    pub(super) fn read(all: &Table, grid: Value) -> Result<Self, String> {
        let Value::Table(mut grid) = grid else {
            return Err("expected a table: write [[grid]], then its keys".to_owned());
        };
        let name = match grid.remove("name") {
            Some(Value::String(name)) => Some(name),
            None => None,
            Some(other) => return Err(format!("name = {other}: expected a text in quotes")),
        };
        let recipes = match grid.remove("recipe") {
            None => {
                return Err("no recipe is named; write recipe = \"cifar10\", or another of `calmix recipes`"
                    .to_owned());
            }
            Some(value) => {
                let names =
                    listed(value.clone()).0.iter().map(|name| name.as_str().map(str::to_owned)).collect();
                let names: Option<Vec<String>> = names;
                names
                    .filter(|names| !names.is_empty())
                    .ok_or(format!("recipe = {value}: expected a name in quotes, or a list of names"))?
            }
        };
        let seeds = match grid.remove("seeds") {
            None => Vec::new(),
            Some(value) => {
                let seeds: Option<Vec<i64>> = listed(value.clone()).0.iter().map(Value::as_integer).collect();
                seeds
                    .filter(|seeds| !seeds.is_empty())
                    .ok_or(format!("seeds = {value}: expected a list of whole numbers"))?
            }
        };
        let mut keys = BTreeMap::new();
        flatten("", all.clone(), &mut keys);
        flatten("", grid, &mut keys);
        // Refused before the combinations are formed, which could exhaust memory if the file is hostile.
        if keys.len() > may_change().len() + must_match().len() {
            return Err(format!("{} keys, more than a recipe has", keys.len()));
        }
        let mut axes = Vec::new();
        for (key, value) in keys {
            let (values, is_named) = listed(value);
            if values.is_empty() {
                return Err(format!("{key} is an empty list"));
            }
            axes.push(GridAxis { key, values, is_named });
        }
        Ok(Self { name, recipes, seeds, axes })
    }

    /// Returns the number of runs; `None` on overflow.
    pub(super) fn size(&self) -> Option<usize> {
        let axes = self.axes.iter().map(|axis| axis.values.len());
        axes.chain([self.recipes.len(), self.seeds.len().max(1)]).try_fold(1_usize, usize::checked_mul)
    }

    /// Returns the name, recipe and settings of every run. The seed varies slowest, so that the first results cover all
    /// settings.
    pub(super) fn cells(&self) -> Vec<(String, String, BTreeMap<String, Value>)> {
        let mut cells = Vec::new();
        let seeds: Vec<Option<i64>> =
            if self.seeds.is_empty() { vec![None] } else { self.seeds.iter().copied().map(Some).collect() };
        for seed in seeds {
            for recipe in &self.recipes {
                self.combine(recipe, seed, &mut cells);
            }
        }
        cells
    }

    fn combine(
        &self,
        recipe: &str,
        seed: Option<i64>,
        cells: &mut Vec<(String, String, BTreeMap<String, Value>)>,
    ) {
        let total: usize = self.axes.iter().map(|axis| axis.values.len()).product();
        for number in 0..total {
            let (mut rest, mut settings, mut named) = (number, BTreeMap::new(), Vec::new());
            // The last key varies fastest.
            for axis in self.axes.iter().rev() {
                let value = &axis.values[rest % axis.values.len()];
                rest /= axis.values.len();
                settings.insert(axis.key.clone(), value.clone());
                named.extend(axis.is_named.then(|| plain(value)));
            }
            named.reverse();
            let seeded = seed.map(|seed| format!("seed-{seed}"));
            settings.extend(
                seed.into_iter().flat_map(|seed| SEEDS.map(|key| (key.to_owned(), Value::Integer(seed)))),
            );
            let before = self.name.as_deref().map(word).into_iter().chain([word(recipe)]);
            let name: Vec<String> = before.chain(named).chain(seeded).collect();
            cells.push((name.join("-"), recipe.to_owned(), settings));
        }
    }
}

/// Returns the values of a list or a single value, and whether it was a list.
fn listed(value: Value) -> (Vec<Value>, bool) {
    match value {
        Value::Array(values) => (values, true),
        value => (vec![value], false),
    }
}

fn flatten(prefix: &str, table: Table, keys: &mut BTreeMap<String, Value>) {
    for (name, value) in table {
        let path = format!("{prefix}{name}");
        match value {
            Value::Table(table) => flatten(&format!("{path}."), table, keys),
            value => {
                keys.insert(path, value);
            }
        }
    }
}

/// Formats a value as part of a run's name.
fn plain(value: &Value) -> String {
    match value {
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join("_"),
        value => word(&text_of(value)),
    }
}

/// Formats a text as part of a folder name that is valid on every system.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let word: String = text.chars().map(|c| if is_plain(c) { c.to_ascii_lowercase() } else { '_' }).collect();
    let word = word.trim_matches('.');
    if word.is_empty() { "_".to_owned() } else { word.to_owned() }
}

/// Formats a value as on the command line: words without quotes.
pub(super) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
