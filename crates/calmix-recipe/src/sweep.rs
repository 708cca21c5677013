//! A sweep: many runs from one small file.
//!
//! A file has grids. A grid names a recipe and sets keys; a key with a list takes each of its values in turn, and `seeds`
//! sets both seeds of a run. A grid has a run for every combination, with the seeds in the outermost loop. `[all]` sets keys
//! for every grid; a grid's own keys take precedence:
//!
//! ```
//! use std::path::Path;
//!
//! use calmix_recipe::sweep::Sweep;
//!
//! let text = r#"
//! [[grid]]
//! recipe = "cpu-fashion-mnist"
//! seeds = [1, 2, 3]
//! train.steps = 500
//! method.base = ["fixmatch", "softmatch"]
//! method.mixup.pairing = ["none", "calibratemix"]
//! "#;
//! let sweep = Sweep::read(Path::new("mine.toml"), text)?;
//! assert_eq!(sweep.cells.len(), 12);
//! assert_eq!(sweep.cells[0].name, "cpu-fashion-mnist-fixmatch-none-seed-1");
//! assert_eq!(sweep.cells[0].layers().resolve()?.recipe.train.steps, 500);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod grid;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Value;

use crate::problem::RecipeError;
use crate::{Layers, SEEDS};
use calmix_io::shown::shown;
use grid::{Grid, text_of};

/// The maximum number of runs in a sweep: about ten times as many as in all tables of the paper.
const MAX_CELLS: usize = 10_000;

/// A sweep: its description and its runs.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Its purpose, in one line.
    pub description: String,
    /// Its runs, in training order.
    pub cells: Vec<SweepCell>,
}

#[derive(Debug, Clone)]
pub struct SweepCell {
    /// The name of its folder, unique in the sweep: the recipe, the values that vary in its grid, and the seed.
    pub name: String,
    /// The built-in recipe that it is based on.
    pub recipe: String,
    /// The keys that the sweep sets, with their values.
    pub settings: BTreeMap<String, Value>,
    place: PathBuf,
}

impl Sweep {
    /// Reads the text of a sweep file, without resolving its recipes.
    ///
    /// # Errors
    /// If it is not TOML, has no grid, has an unknown top-level key, or two of its runs would have the same name.
    pub fn read(path: &Path, text: &str) -> Result<Self, RecipeError> {
        let fail = |problem: String| RecipeError::of(format!("{}: {problem}", shown(path.display())));
        let mut table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| fail(error.to_string()))?;
        let description = match table.remove("description") {
            Some(Value::String(description)) => description,
            None => String::new(),
            Some(other) => return Err(fail(format!("description = {other}: expected a text in quotes"))),
        };
        let all = match table.remove("all") {
            Some(Value::Table(all)) => all,
            None => toml::Table::new(),
            Some(_) => return Err(fail("`all` must be a table: write [all], then its keys".to_owned())),
        };
        let Some(Value::Array(grids)) = table.remove("grid") else {
            return Err(fail("there is no grid; write [[grid]], then recipe = \"…\" and keys".to_owned()));
        };
        if let Some(key) = table.keys().next() {
            return Err(fail(format!("a sweep has no key `{key}`; put recipe keys under [all] or [[grid]]")));
        }
        let mut cells: Vec<SweepCell> = Vec::new();
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        for (number, grid) in (1..).zip(grids) {
            let in_grid = |problem: String| fail(format!("grid {number}: {problem}"));
            let grid = Grid::read(&all, grid).map_err(in_grid)?;
            if grid.size().is_none_or(|size| cells.len() + size > MAX_CELLS) {
                return Err(fail(format!("the sweep has more than {MAX_CELLS} runs")));
            }
            for (name, recipe, settings) in grid.cells() {
                let place = PathBuf::from(format!("{}, grid {number}", path.display()));
                let cell = SweepCell { name, recipe, settings, place };
                match names.get(&cell.name).map(|&other| &cells[other]) {
                    // The same run may be in two grids: the paper's tables share rows.
                    Some(other) if (&other.recipe, &other.settings) == (&cell.recipe, &cell.settings) => {}
                    Some(_) => {
                        let problem = format!(
                            "the run `{}` is in an earlier grid with other keys; give this grid a `name`",
                            cell.name
                        );
                        return Err(in_grid(problem));
                    }
                    None => {
                        names.insert(cell.name.clone(), cells.len());
                        cells.push(cell);
                    }
                }
            }
        }
        Ok(Self { description, cells })
    }
}

impl SweepCell {
    /// Returns the layers of its recipe, to which more can be added.
    pub fn layers(&self) -> Layers {
        self.over(Layers::new().recipe(&self.recipe))
    }

    /// Adds the sweep's settings to `layers`.
    #[must_use]
    pub fn over(&self, layers: Layers) -> Layers {
        layers.values(&self.place, self.settings.clone())
    }

    /// Returns the keys that the sweep sets as `key=value`, with a single entry for both seeds.
    pub fn changes(&self) -> Vec<String> {
        let is_seed = |key: &str| SEEDS.contains(&key);
        let set = self
            .settings
            .iter()
            .filter(|(key, _)| !is_seed(key))
            .map(|(key, value)| format!("{key}={}", text_of(value)));
        let seed = self.settings.get(SEEDS[0]).map(|seed| format!("seed={seed}"));
        set.chain(seed).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{builtin_sweeps, is_in_paper};

    fn read(text: &str) -> Result<Sweep, String> {
        Sweep::read(Path::new("s.toml"), text).map_err(|error| error.to_string())
    }

    fn names(text: &str) -> Vec<String> {
        read(text).unwrap().cells.into_iter().map(|cell| cell.name).collect()
    }

    #[test]
    fn a_list_varies_and_everything_else_is_fixed() {
        let text = "[all]\ntrain.steps = 5\n[[grid]]\nrecipe = [\"cifar10\", \"svhn\"]\nlabels.count = [4, 25]\n\
                    labels.from = [[\"train\", \"extra\"]]\n";
        assert_eq!(
            names(text),
            ["cifar10-4-train_extra", "cifar10-25-train_extra", "svhn-4-train_extra", "svhn-25-train_extra"]
        );
        let cell = &read(text).unwrap().cells[3];
        assert_eq!(cell.recipe, "svhn");
        let recipe = cell.layers().resolve().unwrap().recipe;
        assert_eq!((recipe.labels.count, recipe.train.steps, recipe.labels.from.len()), (25, 5, 2));
    }

    /// The built-in sweeps cover exactly the settings of the paper's tables.
    #[test]
    fn builtin_sweeps_cover_the_papers_tables() {
        let counted = builtin_sweeps().iter().map(|sweep| {
            let cells = Sweep::read(Path::new(sweep.name), sweep.text).unwrap().cells;
            let settings = cells.iter().map(|cell| {
                let resolved = cell.layers().resolve().unwrap();
                assert!(is_in_paper(&resolved, &cell.recipe), "{}", cell.name);
                cell.changes()
                    .into_iter()
                    .filter(|set| !set.starts_with("seed="))
                    .chain([cell.recipe.clone()])
                    .collect()
            });
            let settings: BTreeSet<Vec<String>> = settings.collect();
            (sweep.name, settings.len(), cells.len())
        });
        // Tables 1 to 4 have 136, 240, 32 and 28 numbers: an ECE and an error per setting.
        let expected = [
            ("table-1", 68, 204),
            ("table-2", 120, 360),
            ("table-3", 16, 16),
            ("table-4", 14, 42),
            ("figure-1", 6, 6),
        ];
        assert_eq!(counted.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn grids_share_runs_and_do_not_confuse_them() {
        let grid = "[[grid]]\nrecipe = \"cifar10\"\nseeds = [0, 1]\n";
        assert_eq!(names(&[grid, grid].concat()), ["cifar10-seed-0", "cifar10-seed-1"]);
        let other = format!("{grid}{grid}train.steps = 5\n");
        assert!(read(&other).unwrap_err().contains("grid 2: the run `cifar10-seed-0` is in an earlier grid"));
        assert_eq!(names(&format!("{other}name = \"short\"\n")).last().unwrap(), "short-cifar10-seed-1");
    }

    /// Names in a file cannot place a run outside the folder of its sweep.
    #[test]
    fn run_names_are_safe_folder_names() {
        let name = |recipe: &str| names(&format!("[[grid]]\nrecipe = \"{recipe}\"\n")).concat();
        assert_eq!(["..", "", "../x", "/etc", "a b"].map(name), ["_", "_", "_x", "_etc", "a_b"]);
    }

    /// A truncated or damaged file is read or refused, without a panic.
    #[test]
    fn damaged_files_do_no_harm() {
        let text = builtin_sweeps().iter().find(|sweep| sweep.name == "table-4").unwrap().text;
        let (mut good, mut refused) = (0, 0);
        for (at, _) in text.char_indices() {
            for damaged in
                ["", "]", "\"", "=", "[[", "9", ".", "#"].map(|other| format!("{}{other}", &text[..at]))
            {
                match read(&damaged) {
                    Ok(sweep) => good += usize::from(!sweep.cells.is_empty()),
                    Err(error) => refused += usize::from(error.starts_with("s.toml: ")),
                }
            }
        }
        assert!(good > 100 && refused > 1_000, "{good} {refused}");
        let keys: Vec<String> = (0..1_000).map(|n| format!("a.b{n} = 1\n")).collect();
        let text = format!("[[grid]]\nrecipe = \"cifar10\"\n{}", keys.concat());
        assert!(read(&text).unwrap_err().contains("1000 keys, more than a recipe has"));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, problem) in [
            ("", "there is no grid"),
            ("[[grid]]\n", "grid 1: no recipe is named; write recipe = \"cifar10\""),
            ("[[grid]]\nrecipe = 3\n", "grid 1: recipe = 3"),
            ("[[grid]]\nrecipe = \"cifar10\"\nseeds = [\"a\"]\n", "grid 1: seeds"),
            ("[[grid]]\nrecipe = \"cifar10\"\nlabels.count = []\n", "grid 1: labels.count is an empty list"),
            (
                "train.steps = 3\n[[grid]]\nrecipe = \"cifar10\"\n",
                "a sweep has no key `train`; put recipe keys under",
            ),
            ("grid = 3", "there is no grid"),
            ("[[grid", "TOML parse error"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("s.toml: ") && error.contains(problem), "{text}: {error}");
        }
        let many: Vec<String> = (0..400).map(|n| n.to_string()).collect();
        let axis = |key: &str| format!("{key} = [{}]\n", many.join(","));
        let text = format!("[[grid]]\nrecipe = \"cifar10\"\n{}{}", axis("labels.count"), axis("train.steps"));
        assert!(read(&text).unwrap_err().contains("more than 10000 runs"));
        let unknown =
            read("[[grid]]\nrecipe = \"cifar10\"\ntrain.stepz = 3\n").unwrap().cells[0].layers().resolve();
        let unknown = unknown.unwrap_err().to_string();
        assert!(unknown.contains("s.toml, grid 1: there is no key `train.stepz`"), "{unknown}");
    }
}
