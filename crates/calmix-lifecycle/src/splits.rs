//! The split of the labels into training and evaluation; the dataset's own validation split takes precedence.

use std::ops::Range;
use std::path::Path;

use calmix_core::rng::{Domain, Seed};
use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::loader::SampleIds;
use calmix_data::prepare::copies_of;
use calmix_data::sample_list::SampleList;
use calmix_data::split::{HoldOut, LabelSplit, SplitPlan};
use calmix_metrics::shift::reference::reference_samples;
use calmix_recipe::{Keep, Recipe};

/// The names that a validation split may have.
const VALIDATION_NAMES: [&str; 2] = ["validation", "val"];

/// Finds the dataset's own validation split; `None` if there is none, or the run trains on it or tests on it.
pub fn own_validation(recipe: &Recipe, dataset: &Dataset) -> Option<Range<u64>> {
    let labels = &recipe.labels;
    let is_used = |name: &str| {
        let used_names = labels.from.iter().chain(&labels.unlabelled_from);
        recipe.dataset.test == name || used_names.into_iter().any(|used| used == name)
    };
    let own = VALIDATION_NAMES.into_iter().find(|name| !is_used(name) && dataset.subset(name).is_ok())?;
    dataset.subset(own).ok().filter(|ids| !ids.is_empty())
}

/// Selects the samples to train on without their labels: all of the split, or as many as the recipe sets. The selection does not
/// depend on the seed, so runs with other labels share most of them.
pub fn unlabelled(recipe: &Recipe, split: &LabelSplit, dataset: &Dataset) -> Result<SampleIds, DataError> {
    let mut all: SampleIds = split.unlabelled(dataset)?.into();
    if recipe.labels.leave_out_test_copies && !recipe.dataset.test.is_empty() {
        let copies = copies_of(dataset, &dataset.subset(&recipe.dataset.test)?)?;
        let ids = (0..all.len()).filter_map(|position| all.id(position));
        let others: Vec<u64> = ids.filter(|id| copies.binary_search(id).is_err()).collect();
        all = others.as_slice().into();
    }
    let count = recipe.unlabelled_samples(all.len());
    if count >= all.len() {
        return Ok(all);
    }
    let ids = (0..all.len()).filter_map(|position| all.id(position)).collect();
    Ok(drawn_unlabelled(ids, count).as_slice().into())
}

/// Draws `count` of these samples, ascending. The draw depends on their ids alone.
pub fn drawn_unlabelled(ids: Vec<u64>, count: u64) -> Vec<u64> {
    drawn(ids, count, Domain::UnlabelledCount)
}

/// Draws the unlabelled samples that are kept out of the fit of the projection, so that new samples can be compared with them;
/// ascending, and empty if there are too few unlabelled samples. The draw depends on their ids alone.
pub fn reference_ids(unlabelled: &[u64], labelled: &[u64]) -> Vec<u64> {
    let ids: Vec<u64> = unlabelled.iter().copied().filter(|id| labelled.binary_search(id).is_err()).collect();
    let count = reference_samples(ids.len()) as u64;
    drawn(ids, count, Domain::Reference)
}

fn drawn(mut ids: Vec<u64>, count: u64, domain: Domain) -> Vec<u64> {
    if count >= ids.len() as u64 {
        return ids;
    }
    let rank = |&id: &u64| (Seed(0).stream(domain, 0, id).next_u64(), id);
    ids.sort_by_cached_key(rank);
    ids.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    ids.sort_unstable();
    ids
}

/// Draws the split of a run. If the dataset has its own validation split, no label is held out.
pub fn draw_split(recipe: &Recipe, dataset: &Dataset) -> Result<LabelSplit, DataError> {
    let labels = &recipe.labels;
    let mut plan: SplitPlan = labels.plan();
    if own_validation(recipe, dataset).is_some() || recipe.has_head() {
        plan.validation = HoldOut::NONE;
    }
    let split = if labels.keep == Keep::Given {
        let given = LabelSplit::read(Path::new(&labels.file), dataset)?;
        LabelSplit::given(dataset, plan, given.labelled().to_vec())?
    } else {
        LabelSplit::draw(dataset, plan)?
    };
    // Without unlabelled batches the list is not used; a warning tells the user.
    if labels.unlabelled_file.is_empty() || recipe.unlabelled() == 0 {
        return Ok(split);
    }
    let root = Path::new(&recipe.dataset.path);
    let list = SampleList::read(Path::new(&labels.unlabelled_file), dataset, root)?;
    split.only(&list, dataset)
}
