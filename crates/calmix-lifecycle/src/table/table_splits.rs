//! Which splits of a table a run uses, if neither the recipe nor the user knows the table.

use calmix_data::dataset::Dataset;
use calmix_recipe::{Recipe, Resolved};
use toml::Value;

use crate::start_notice::{InsteadOfTest, StartNotice};

/// Chooses the splits of a table to evaluate on and to train on without labels, unless the user sets them. The recipe gets
/// them first, since the split of the labels depends on them.
pub fn take_splits(
    resolved: &Resolved,
    recipe: &mut Recipe,
    dataset: &Dataset,
    notify: &mut dyn FnMut(StartNotice<'_>),
) -> Vec<(&'static str, Value)> {
    let has = |name: &str| dataset.header().subsets.iter().any(|subset| subset.name == name);
    let mut decided = Vec::new();
    if !has("test") && !resolved.is_set_by_user("dataset.test") {
        let evaluated_on = if has("val") {
            InsteadOfTest::ValidationSplit
        } else if recipe.has_head() {
            InsteadOfTest::OutOfFold
        } else {
            InsteadOfTest::HeldOut
        };
        notify(StartNotice::NoTestSplit { evaluated_on });
        recipe.dataset.test.clear();
        decided.push(("dataset.test", Value::String(String::new())));
    }
    let names: Vec<String> =
        ["train", "unlabelled"].into_iter().filter(|name| has(name)).map(str::to_owned).collect();
    if !resolved.is_set_by_user("labels.unlabelled_from") {
        recipe.labels.unlabelled_from.clone_from(&names);
    }
    let names = names.into_iter().map(Value::String).collect();
    decided.push(("labels.unlabelled_from", Value::Array(names)));
    decided
}
