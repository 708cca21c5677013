//! A checked recipe with the origins of its values.

use std::collections::BTreeMap;
use std::path::Path;

use calmix_data::cloud::CloudUrl;
use toml::Value;

use super::rules::{RuleViolation, check_rules};
use super::unused_keys::unused_keys;
use crate::device::Device;
use crate::origin::Origin;
use crate::precision::Precision;
use crate::problem::{Problem, RecipeError, Warning, What, unexpected};
use crate::value::{self, Leaves};
use crate::{OrAuto, OrderName, Recipe};

/// A checked recipe with the origin of each value.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub recipe: Recipe,
    /// Values that are allowed but probably not intended.
    pub warnings: Vec<Warning>,
    leaves: Leaves,
    origins: BTreeMap<String, Origin>,
    comments: BTreeMap<String, String>,
    base: Option<String>,
}

impl Resolved {
    /// Builds the recipe from the values by key, and checks their combinations.
    pub(super) fn new(
        leaves: Leaves,
        defaults: &Leaves,
        origins: BTreeMap<String, Origin>,
        comments: BTreeMap<String, String>,
        base: Option<String>,
    ) -> Result<Self, RecipeError> {
        let recipe = value::recipe(&leaves).map_err(|error| unexpected(&error))?;
        let mut resolved = Self { recipe, warnings: Vec::new(), leaves, origins, comments, base };
        resolved.reset_unused(defaults)?;
        resolved.check_rules()?;
        Ok(resolved)
    }

    /// Returns the origin of a value.
    pub fn origin(&self, path: &str) -> Origin {
        self.origins.get(path).cloned().unwrap_or(Origin::Default)
    }

    /// Returns whether the user set a value: in a file, the environment or on the command line.
    pub fn is_set_by_user(&self, path: &str) -> bool {
        let origin = self.origin(path);
        origin.is_from_user() || matches!(origin, Origin::Option { .. })
    }

    /// Returns the origin of each value by path.
    pub fn origins(&self) -> BTreeMap<String, Origin> {
        self.leaves.keys().map(|path| (path.clone(), self.origin(path))).collect()
    }

    /// Returns the built-in recipe that it is based on, if any.
    pub fn base(&self) -> Option<&str> {
        self.base.as_deref()
    }

    /// Returns the comments on the values in their files, by path.
    pub fn comments(&self) -> &BTreeMap<String, String> {
        &self.comments
    }

    /// Returns the value at a path, as TOML.
    pub fn value(&self, path: &str) -> Option<&Value> {
        self.leaves.get(path)
    }

    /// Formats every value of the recipe as TOML. This text is stored with a run; reading it gives the same recipe.
    pub fn to_toml(&self) -> String {
        value::document(&self.leaves, &|_| None)
    }

    /// Returns every value of the recipe as JSON, with an object for each section.
    pub fn to_json(&self) -> serde_json::Value {
        value::json(&self.leaves)
    }

    /// Formats the recipe as TOML with a comment after each value: its origin, and the comment on it there.
    pub fn to_toml_with_origins(&self) -> String {
        value::document(&self.leaves, &|path| {
            let comment = self.comments.get(path).map(|comment| format!(": {comment}"));
            Some(format!("{}{}", self.origin(path), comment.unwrap_or_default()))
        })
    }

    /// Checks that a run can start: the values that a recipe cannot know must be set.
    ///
    /// # Errors
    /// Lists every key that is still missing.
    pub fn ready(&self) -> Result<(), RecipeError> {
        let Recipe { dataset, network, .. } = &self.recipe;
        let missing = |is_missing: bool, path: &str, hint: &str| {
            let what = What::Missing { hint: hint.to_owned() };
            is_missing.then(|| Problem { origin: self.origin(path), path: path.to_owned(), what })
        };
        let problems = [
            missing(
                dataset.path.is_empty(),
                "dataset.path",
                "set it to the folder of the dataset, for example with `--set dataset.path=FOLDER`",
            ),
            missing(
                self.recipe.has_head() && !self.recipe.has_vectors() && network.weights.is_empty(),
                "network.weights",
                "network.train is \"head\", and a head needs a pretrained backbone; `calmix weights list` shows those available",
            ),
        ];
        let mut problems: Vec<_> = problems.into_iter().flatten().collect();
        let mut refuse = |path: &str, value: String, rule: &str| {
            let what = What::Rule { value, rule: rule.to_owned() };
            problems.push(Problem { origin: self.origin(path), path: path.to_owned(), what });
        };
        if self.recipe.has_vectors() && !self.recipe.has_head() {
            let rule =
                "dataset.source is \"vectors\", and only a head can be trained on vectors; use \"head\"";
            refuse("network.train", network.train.to_string(), rule);
        }
        let needs_blocks = CloudUrl::is_url(Path::new(&dataset.path))
            && !self.recipe.has_head()
            && self.recipe.unlabelled() > 0
            && dataset.order != OrderName::Blocks;
        if needs_blocks {
            let rule = "dataset.path is a URL, and an order over all samples would fetch a shard for every sample; use \"blocks\"";
            refuse("dataset.order", dataset.order.to_string(), rule);
        }
        if problems.is_empty() { Ok(()) } else { Err(RecipeError { problems }) }
    }

    /// Replaces `auto` by the values chosen at launch, so that the stored recipe is enough to repeat the run.
    ///
    /// # Errors
    /// If the values do not pass the recipe's own checks.
    pub fn decide(
        &mut self,
        device: Device,
        precision: Precision,
        threads: u32,
        micro_batches: u32,
    ) -> Result<(), RecipeError> {
        let train = &mut self.recipe.train;
        (train.device, train.precision) = (OrAuto::Is(device), OrAuto::Is(precision));
        (train.threads, train.micro_batches) = (threads, micro_batches);
        self.leaves = value::of(&self.recipe).map_err(|error| unexpected(&error))?;
        Ok(())
    }

    /// Resets values that have no effect to their defaults, so that recipes with the same effect are equal.
    fn reset_unused(&mut self, defaults: &Leaves) -> Result<(), RecipeError> {
        for (path, why) in unused_keys(&self.recipe, &self.leaves) {
            let (Some(value), Some(default)) = (self.leaves.get_mut(&path), defaults.get(&path)) else {
                continue;
            };
            let origin = self.origins.remove(&path).unwrap_or(Origin::Default);
            self.comments.remove(&path);
            if value != default && origin.is_from_user() {
                let why = format!("has no effect: {why}");
                self.warnings.push(Warning { path, value: value.to_string(), origin, why });
            }
            value.clone_from(default);
        }
        self.recipe = value::recipe(&self.leaves).map_err(|error| unexpected(&error))?;
        Ok(())
    }

    fn check_rules(&mut self) -> Result<(), RecipeError> {
        let mut problems = Vec::new();
        for RuleViolation { path, why, is_error } in check_rules(&self.recipe) {
            let (path, origin) = (path.to_owned(), self.origin(path));
            let value = self.leaves.get(&path).map(Value::to_string).unwrap_or_default();
            if is_error {
                problems.push(Problem { path, origin, what: What::Rule { value, rule: why } });
            } else {
                self.warnings.push(Warning { path, value, origin, why });
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(RecipeError { problems }) }
    }
}
