//! Restricts the unlabelled samples of a split to a list.

use std::sync::Arc;

use calmix_formats::error::FormatProblem;

use super::LabelSplit;
use crate::dataset::Dataset;
use crate::error::DataError;
use crate::sample_list::SampleList;

impl LabelSplit {
    /// Restricts the unlabelled samples to those of `list`. The draw does not change: listed samples that keep their label
    /// or are held out are treated as without a list, because a list cannot know what a seed draws. Labelled samples are in
    /// the pool if and only if the plan includes them.
    ///
    /// # Errors
    /// If the list names a sample of a subset that no unlabelled samples are taken from, such as a test image, or if it names
    /// no unlabelled sample.
    pub fn only(self, list: &SampleList, dataset: &Dataset) -> Result<Self, DataError> {
        let all = self.all_unlabelled(dataset)?;
        let ranges = super::ranges(dataset, &self.plan.unlabelled)?;
        let mut pool = Vec::with_capacity(list.samples().len());
        for &(id, row) in list.samples() {
            if !ranges.iter().any(|range| range.contains(&id)) {
                return Err(self.outside(list, dataset, id, row));
            }
            let is_labelled = self.labelled.binary_search(&id).is_ok();
            if !is_labelled && all.position(id).is_some() {
                pool.push(id);
            }
        }
        if pool.is_empty() {
            let problem = format!(
                "none of the {} listed samples is unlabelled: all of them keep their label or are held out",
                list.samples().len()
            );
            return Err(DataError::content(list.path(), problem)
                .hint("list other samples, or keep fewer labels (labels.keep, labels.count)"));
        }
        // The same as without a list, if the plan includes them.
        pool.extend(self.labelled.iter().filter(|&&id| all.position(id).is_some()));
        pool.sort_unstable();
        Ok(Self { pool: Some(Arc::from(pool)), ..self })
    }

    /// Returns whether a list chose the unlabelled samples.
    pub fn is_listed(&self) -> bool {
        self.pool.is_some()
    }

    fn outside(&self, list: &SampleList, dataset: &Dataset, id: u64, row: u64) -> DataError {
        let mut subsets = dataset.header().subsets.iter();
        let subset = subsets.find(|subset| (subset.first..subset.first + subset.count).contains(&id));
        let subset = subset.map_or("", |subset| subset.name.as_str());
        let from = self.plan.unlabelled.join(", ");
        let problem = format!(
            "the sample is in the subset `{subset}`, but unlabelled samples are taken from {from} (labels.unlabelled_from)"
        );
        list.error(row, FormatProblem::Content(problem))
            .hint(format!("leave the samples of `{subset}` out of the list, for example by their folder: WHERE path NOT LIKE '%/{subset}/%'"))
    }
}
