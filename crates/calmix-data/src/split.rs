//! The split of a dataset into samples that keep their labels, held-out samples, and unlabelled samples.
//!
//! A split is drawn from a seed, class by class; the draw of a class depends only on its name, not on the order of the
//! classes or on other classes. It is a small file that can be published: the ids that it names, and the fingerprint of
//! their dataset.
//!
//! If samples have [groups](crate::groups), whole groups are held out, and no other sample of these groups is trained on.
//!
//! ```
//! use calmix_core::rng::Seed;
//! use calmix_data::dataset::Dataset;
//! use calmix_data::manifest::{Encoding, ManifestBuilder, PixelLayout};
//! use calmix_data::split::{LabelSplit, Rule, SplitPlan};
//!
//! // Ten grey images of one pixel, in two classes.
//! let root = tempfile::tempdir()?;
//! let pixels: Vec<u8> = (0..10).collect();
//! std::fs::write(root.path().join("pixels"), &pixels)?;
//! let target = root.path().join("prepared");
//! let encoding = Encoding::Raw { width: 1, height: 1, layout: PixelLayout::Grey };
//! let mut builder = ManifestBuilder::new(&target, vec!["even".into(), "odd".into()], encoding)?;
//! builder.subset("train");
//! let part = builder.part("pixels", 10)?;
//! for pixel in pixels {
//!     builder.sample(part, pixel.into(), &[pixel], Some(u32::from(pixel % 2)))?;
//! }
//! builder.finish()?;
//!
//! let dataset = Dataset::open(&target, root.path())?;
//! let plan = SplitPlan { rule: Rule::PerClass { labels: 2 }, ..SplitPlan::new(Seed(1), "train") };
//! let split = LabelSplit::draw(&dataset, plan)?;
//! let counts = split.counts(&dataset)?;
//! assert_eq!((counts.labelled, counts.unlabelled), (4, 6));
//!
//! let path = root.path().join("split.json");
//! split.write(&path)?;
//! assert_eq!(LabelSplit::read(&path, &dataset)?, split);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod draw;
mod file;
mod held_groups;
mod plan;
mod pool;
mod quota;
mod unlabelled;

use std::ops::Range;
use std::sync::Arc;

use calmix_formats::error::FormatProblem;

use draw::Candidates;
pub use draw::Shortfall;
pub use plan::{HoldOut, HoldOutRule, Rule, SplitPlan};
pub use unlabelled::UnlabelledSet;

use crate::dataset::Dataset;
use crate::error::DataError;
use crate::groups::group_count;

/// The format of `split.json` that this version writes.
pub const VERSION: u32 = 1;

/// A split of one dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelSplit {
    version: u32,
    dataset: String,
    plan: SplitPlan,
    labelled: Vec<u64>,
    validation: Vec<u64>,
    /// The unlabelled samples in ascending order, if a list restricts them.
    pool: Option<Arc<[u64]>>,
    short: Vec<Shortfall>,
}

/// The sample counts of a split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitCounts {
    /// The number of labelled training samples.
    pub labelled: u64,
    /// The number of labelled held-out samples.
    pub validation: u64,
    /// The number of unlabelled training samples.
    pub unlabelled: u64,
    /// The number of samples in both `unlabelled` and `labelled`: zero unless the plan includes labelled samples.
    pub in_both: u64,
    /// The counts of `labelled` by class.
    pub per_class: Vec<u64>,
    /// The number of groups of `labelled`, counting each sample without a group as one; `None` if the dataset has no groups.
    pub groups: Option<u64>,
}

impl LabelSplit {
    /// Draws labels by `plan`.
    ///
    /// # Errors
    /// If the plan names subsets that do not exist, wants no labels or a given list, or if there are no
    /// labels to draw.
    pub fn draw(dataset: &Dataset, plan: SplitPlan) -> Result<Self, DataError> {
        if plan.rule == Rule::Given {
            let problem = "the labels are a given list, so there is nothing to draw";
            return Err(DataError::content(dataset.folder(), problem).hint("pass the list of ids"));
        }
        let ranges = ranges(dataset, &plan.labelled)?;
        Self::from_candidates(dataset, plan, &Candidates::Ranges(&ranges))
    }

    /// Keeps the labels of exactly these samples (minus a validation share, if the plan has one); the plan's rule becomes
    /// [`Rule::Given`].
    ///
    /// # Errors
    /// If an id occurs twice, is in none of the plan's labelled subsets or has no label.
    pub fn given(dataset: &Dataset, plan: SplitPlan, mut ids: Vec<u64>) -> Result<Self, DataError> {
        ids.sort_unstable();
        let plan = SplitPlan { rule: Rule::Given, ..plan };
        check_ids(dataset, &plan, &ids).map_err(|problem| DataError::new(dataset.folder(), problem))?;
        Self::from_candidates(dataset, plan, &Candidates::Ids(&ids))
    }

    /// Returns the plan that drew the split.
    pub fn plan(&self) -> &SplitPlan {
        &self.plan
    }

    /// Returns the samples that keep their label, ascending.
    pub fn labelled(&self) -> &[u64] {
        &self.labelled
    }

    /// Returns the samples held out with their label, ascending.
    pub fn validation(&self) -> &[u64] {
        &self.validation
    }

    /// Returns the classes with fewer labels than requested.
    pub fn short(&self) -> &[Shortfall] {
        &self.short
    }

    /// Returns whether the plan draws labels class by class and leaves some out: the labels then have another mix of classes than
    /// the samples, unless all classes are equally frequent.
    pub fn leaves_labels_out(&self, dataset: &Dataset) -> Result<bool, DataError> {
        if !matches!(self.plan.rule, Rule::PerClass { .. } | Rule::Total { .. }) {
            return Ok(false);
        }
        for range in ranges(dataset, &self.plan.labelled)? {
            for record in dataset.records(range) {
                let (id, record) = record?;
                let is_drawn =
                    [&self.labelled, &self.validation].iter().any(|ids| ids.binary_search(&id).is_ok());
                if record.class().is_some() && !is_drawn {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns the samples to train on without their label.
    ///
    /// # Errors
    /// If `dataset` lacks the plan's subsets, because it is another dataset.
    pub fn unlabelled(&self, dataset: &Dataset) -> Result<UnlabelledSet, DataError> {
        match &self.pool {
            Some(pool) => Ok(UnlabelledSet::of_ids(Arc::clone(pool))),
            None => self.all_unlabelled(dataset),
        }
    }

    /// Returns the number of groups of the labelled samples.
    fn groups(&self, dataset: &Dataset) -> Result<Option<u64>, DataError> {
        if !dataset.has_groups() {
            return Ok(None);
        }
        Ok(Some(group_count(&dataset.group_numbers(&self.labelled)?, self.labelled.len())))
    }

    /// Returns the samples of the plan's unlabelled subsets, without labelled samples and held-out groups.
    fn all_unlabelled(&self, dataset: &Dataset) -> Result<UnlabelledSet, DataError> {
        let kept = if self.plan.include_labelled { &[] } else { self.labelled.as_slice() };
        let ranges = ranges(dataset, &self.plan.unlabelled)?;
        let held_out = self.in_held_out_groups(dataset, &ranges)?;
        let excluded = kept.iter().chain(&self.validation).copied().chain(held_out);
        Ok(UnlabelledSet::new(ranges, excluded))
    }

    /// Returns the samples in these ranges that share a group with a held-out sample. Training on them without a label would
    /// make the model better at the held-out samples than at a new group.
    fn in_held_out_groups(&self, dataset: &Dataset, ranges: &[Range<u64>]) -> Result<Vec<u64>, DataError> {
        if !dataset.has_groups() || self.validation.is_empty() {
            return Ok(Vec::new());
        }
        let groups = self.validation.iter().map(|&id| dataset.group(id));
        let groups = groups.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        dataset.samples_in(ranges, &groups)
    }

    /// Counts the samples of each kind.
    pub fn counts(&self, dataset: &Dataset) -> Result<SplitCounts, DataError> {
        let unlabelled = self.unlabelled(dataset)?;
        let mut per_class = vec![0; dataset.classes().len()];
        let mut in_both = 0;
        for &id in &self.labelled {
            let label = dataset.label(id)?;
            if let Some(count) = label.and_then(|label| per_class.get_mut(label as usize)) {
                *count += 1;
            }
            in_both += u64::from(unlabelled.position(id).is_some());
        }
        Ok(SplitCounts {
            labelled: self.labelled.len() as u64,
            validation: self.validation.len() as u64,
            unlabelled: unlabelled.len(),
            in_both,
            per_class,
            groups: self.groups(dataset)?,
        })
    }

    fn from_candidates(dataset: &Dataset, plan: SplitPlan, from: &Candidates<'_>) -> Result<Self, DataError> {
        plan.check().map_err(|problem| DataError::new(dataset.folder(), problem))?;
        // The unlabelled subsets must exist now, not only when training starts.
        ranges(dataset, &plan.unlabelled)?;
        let draw::Drawn { labelled, validation, short } = draw::draw(dataset, &plan, from)?;
        let dataset = dataset.fingerprint().to_owned();
        Ok(Self { version: VERSION, dataset, plan, labelled, validation, pool: None, short })
    }
}

/// Returns the id ranges of these subsets in ascending order.
fn ranges(dataset: &Dataset, names: &[String]) -> Result<Vec<Range<u64>>, DataError> {
    let mut ranges = names.iter().map(|name| dataset.subset(name)).collect::<Result<Vec<_>, _>>()?;
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    // A subset that is named twice counts once.
    ranges.dedup();
    Ok(ranges)
}

/// Checks that `ids` ascend without repetition, are in the plan's labelled subsets and have labels.
fn check_ids(dataset: &Dataset, plan: &SplitPlan, ids: &[u64]) -> Result<(), FormatProblem> {
    let content = |problem: String| Err(FormatProblem::Content(problem));
    let mut pairs = ids.iter().zip(ids.iter().skip(1));
    if let Some((a, b)) = pairs.find(|(a, b)| a >= b) {
        return content(format!("the ids {a} and {b} are not in ascending order"));
    }
    let ranges = ranges(dataset, &plan.labelled)?;
    for &id in ids {
        if !ranges.iter().any(|range| range.contains(&id)) {
            return content(format!("sample {id} is in none of the subsets {}", plan.labelled.join(", ")));
        }
        if dataset.label(id)?.is_none() {
            return content(format!("sample {id} has no label"));
        }
    }
    Ok(())
}
