//! The layers of a recipe, and how they are resolved into one checked recipe.

pub(crate) mod check;
pub(crate) mod layer;
mod resolved;
pub(crate) mod rules;
mod unused_keys;

pub use resolved::Resolved;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::slice;

use toml::Value;

use crate::Recipe;
use crate::builtin::{self, builtin};
use crate::origin::{Origin, Place};
use crate::problem::{Problem, RecipeError, What, unexpected};
use crate::value::{self, find};
use check::check;
use layer::{Layer, Setting};

/// The maximum size of a recipe file, in bytes: about ten times the size of all keys.
pub const MAX_RECIPE_BYTES: u64 = 128 << 10;

/// The layers of a recipe. They may be added in any order; later entries in this list take precedence: defaults,
/// augmentation family, built-in recipes, preset, pretrained weights, values that depend on the dataset, files, environment,
/// settings, options.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    recipes: Vec<Layer>,
    pretrained: Vec<Layer>,
    decided: Vec<Layer>,
    files: Vec<Layer>,
    environment: Vec<Layer>,
    /// The settings from every `--set`.
    settings: Layer,
    set_count: usize,
    options: Vec<Layer>,
    /// The name of the last built-in recipe that was requested.
    base: Option<String>,
}

impl Layers {
    /// Returns only the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a built-in recipe.
    #[must_use]
    pub fn recipe(mut self, name: &str) -> Self {
        self.extend(name, Origin::Default, &mut Vec::new());
        self.base = Some(name.to_owned());
        self
    }

    #[must_use]
    pub fn file(mut self, path: &Path) -> Self {
        match read(path) {
            Ok(text) => self.text(path, &text),
            Err(error) => {
                let origin = Origin::Text { place: Place::File(path.to_owned()), line: None };
                self.files.push(Layer::unreadable(origin, format!("cannot be read: {error}")));
                self
            }
        }
    }

    /// Adds the text of a file.
    #[must_use]
    pub fn text(mut self, path: &Path, text: &str) -> Self {
        let layer = Layer::text(&Place::File(path.to_owned()), text);
        if let Some((name, origin)) = layer.extends.clone() {
            self.extend(&name, origin, &mut Vec::new());
            self.base = Some(name);
        }
        self.files.push(layer);
        self
    }

    /// Adds values that calmix decides itself, with lower precedence than the user's. `by` names their origin in messages.
    #[must_use]
    pub fn decided(mut self, by: &str, values: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let origin = Origin::Text { place: Place::Decided(by.to_owned()), line: None };
        let values = values.into_iter().map(|(path, value)| (path.to_owned(), value));
        self.decided.push(Layer::values(&origin, values));
        self
    }

    /// Adds keys and values from a file that is not a recipe, such as a sweep.
    #[must_use]
    pub fn values(mut self, path: &Path, values: impl IntoIterator<Item = (String, Value)>) -> Self {
        let origin = Origin::Text { place: Place::File(path.to_owned()), line: None };
        self.files.push(Layer::values(&origin, values));
        self
    }

    /// Sets the values in pretrained weights, each with the file it was read from: they override built-in recipes, but
    /// nothing that the user sets. The later of two values takes precedence.
    #[must_use]
    pub fn pretrained<'a>(mut self, values: impl IntoIterator<Item = (&'a Path, &'a str, Value)>) -> Self {
        let mut layer = Layer::default();
        for (path, key, value) in values {
            let origin = Origin::Text { place: Place::Pretrained(path.to_owned()), line: None };
            layer.add(key, origin, |_| value);
        }
        self.pretrained = vec![layer];
        self
    }

    /// Adds the environment, such as [`std::env::vars_os`]: `CALMIX_TRAIN__STEPS` sets `train.steps`, and
    /// `CALMIX__SELECTION` sets `selection`. Other variables are ignored.
    #[must_use]
    pub fn environment(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.environment.push(Layer::environment(variables));
        self
    }

    /// Adds a setting, such as `train.steps=2000`.
    #[must_use]
    pub fn set(mut self, setting: &str) -> Self {
        let origin = self.next_set();
        self.settings.set(setting, origin);
        self
    }

    /// Adds a setting with the value `text`, without parsing it.
    #[must_use]
    pub fn set_to(mut self, path: &str, text: String) -> Self {
        let origin = self.next_set();
        self.settings.add(path, origin, |_| Value::String(text));
        self
    }

    /// Adds a setting with a list of texts as its value, without parsing them.
    #[must_use]
    pub fn set_to_list(mut self, path: &str, texts: Vec<String>) -> Self {
        let origin = self.next_set();
        self.settings.add(path, origin, |_| Value::Array(texts.into_iter().map(Value::String).collect()));
        self
    }

    fn next_set(&mut self) -> Origin {
        self.set_count += 1;
        Origin::Set { number: self.set_count }
    }

    /// Adds a key that a command-line option sets, such as `--device`.
    #[must_use]
    pub fn option(mut self, option: &'static str, path: &str, value: &str) -> Self {
        self.options.push(Layer::option(option, path, value));
        self
    }

    /// Removes a key from the files added so far.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        for layer in &mut self.files {
            layer.settings.retain(|setting| setting.path != path);
        }
        self
    }

    /// Returns the word that the highest layer sets for a key, without checking it; `None` if no layer sets a word.
    pub fn word(&self, path: &str) -> Option<&str> {
        self.all_settings().rev().find(|setting| setting.path == path)?.value.as_str()
    }

    /// Returns whether the user sets a key: in a file, the environment or on the command line.
    pub fn is_set_by_user(&self, path: &str) -> bool {
        self.paths_set_by_user().any(|set| set == path)
    }

    /// Iterates over the keys that the user sets, some of them more than once.
    pub fn paths_set_by_user(&self) -> impl Iterator<Item = &str> {
        let set = slice::from_ref(&self.settings);
        let layers: [&[Layer]; 4] = [&self.files, &self.environment, set, &self.options];
        let settings = layers.into_iter().flatten().flat_map(|layer| &layer.settings);
        settings.map(|setting| setting.path.as_str())
    }

    /// Returns the built-in recipe that the layers are based on, if any.
    pub fn base(&self) -> Option<&str> {
        self.base.as_deref()
    }

    /// Returns whether the layers name a built-in recipe or have a file.
    pub fn names_recipe(&self) -> bool {
        self.base.is_some() || !self.files.is_empty()
    }

    /// Iterates over the settings of all layers except pretrained weights, the lowest first.
    fn all_settings(&self) -> impl DoubleEndedIterator<Item = &Setting> {
        let set = slice::from_ref(&self.settings);
        let layers: [&[Layer]; 6] =
            [&self.recipes, &self.decided, &self.files, &self.environment, set, &self.options];
        layers.into_iter().flatten().flat_map(|layer| &layer.settings)
    }

    /// Merges the layers and checks every value.
    ///
    /// # Errors
    /// Lists every unknown key and every invalid value; if there are none, every invalid combination of values.
    pub fn resolve(self) -> Result<Resolved, RecipeError> {
        let defaults = value::of(&Recipe::default()).map_err(|error| unexpected(&error))?;
        let mut leaves = defaults.clone();
        let (mut origins, mut comments) = (BTreeMap::new(), BTreeMap::new());
        let mut problems = Vec::new();
        let base = self.base.clone();
        for layer in self.in_order() {
            problems.extend(layer.problems);
            for Setting { path, value, origin, comment, .. } in layer.settings {
                let Some(field) = find(&path) else { continue };
                match check(&path, field, &value) {
                    Ok(value) => {
                        leaves.insert(path.clone(), value);
                        comments.remove(&path);
                        comments.extend(comment.map(|comment| (path.clone(), comment)));
                        origins.insert(path, origin);
                    }
                    Err(what) => problems.push(Problem { path, origin, what }),
                }
            }
        }
        if !problems.is_empty() {
            return Err(RecipeError { problems });
        }
        Resolved::new(leaves, &defaults, origins, comments, base)
    }

    /// Returns all layers, the lowest first.
    fn in_order(self) -> Vec<Layer> {
        let family = self.word("augment.family").and_then(builtin::family);
        let preset = self.word("preset").and_then(builtin::preset);
        let above =
            [self.pretrained, self.decided, self.files, self.environment, vec![self.settings], self.options];
        let above = above.into_iter().flatten();
        family.into_iter().chain(self.recipes).chain(preset).chain(above).collect()
    }

    /// Adds a built-in recipe after the one that it extends.
    fn extend(&mut self, name: &str, origin: Origin, above: &mut Vec<String>) {
        let known = builtin().iter().find(|recipe| recipe.name == name);
        let Some(recipe) = known.filter(|_| !above.iter().any(|other| other == name)) else {
            let mut layer = Layer::default();
            layer.problem(name, origin, What::NoRecipe { hint: builtin::hint(name) });
            self.recipes.push(layer);
            return;
        };
        let layer = Layer::text(&Place::Recipe(name.to_owned()), recipe.text);
        if let Some((lower, origin)) = layer.extends.clone() {
            above.push(name.to_owned());
            self.extend(&lower, origin, above);
        }
        self.recipes.push(layer);
    }
}

/// Reads the user's file, which may be a link or a pipe.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_RECIPE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_RECIPE_BYTES {
        return Err(io::Error::other(format!("it is larger than {MAX_RECIPE_BYTES} bytes")));
    }
    Ok(text)
}
