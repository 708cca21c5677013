//! The vectors that a head is trained and evaluated on: the projected features of a frozen backbone.

use calmix_data::error::DataError;
use calmix_data::loader::{OnCorrupt, SkippedSample, Tally};
use calmix_formats::error::FormatProblem;
use calmix_head::projection::Projection;
use calmix_head::samples::TrainingRows;
use calmix_lifecycle::run_samples::RunSamples;
use calmix_metrics::predictions::EvalSet;
use calmix_run::model_info::HeadInfo;

use crate::error::HeadsError;
use crate::vector_table::VectorTable;

/// The vectors of all samples of a run. A sample whose image could not be read has none.
#[derive(Debug)]
pub struct HeadVectors {
    /// The projection from stored vectors to those of the head.
    pub projection: Projection,
    /// The head and its backbone, as `model.json` describes them.
    pub info: HeadInfo,
    /// The samples that are trained on: the clean view of each, then its other views if there are any.
    pub training: VectorTable,
    /// The samples that are only evaluated, in their clean view.
    pub evaluation: VectorTable,
}

/// The labelled samples of a split with their vectors.
#[derive(Debug, Default)]
pub(crate) struct LabelledVectors {
    pub(crate) ids: Vec<u64>,
    pub(crate) labels: Vec<u32>,
    pub(crate) vectors: Vec<f32>,
    /// The samples without vectors.
    pub(crate) skipped: Vec<SkippedSample>,
}

impl HeadVectors {
    fn has(&self, id: u64) -> bool {
        [&self.evaluation, &self.training].iter().any(|table| table.ids.binary_search(&id).is_ok())
    }

    /// Appends the clean vector of a sample, if it has one.
    fn read_clean(&self, id: u64, into: &mut Vec<f32>) -> Result<(), HeadsError> {
        let dimensions = self.projection.dimensions();
        if !self.evaluation.read_first(id, dimensions, into)? {
            self.training.read_first(id, dimensions, into)?;
        }
        Ok(())
    }

    /// Reads the vectors of the samples of a split whose class is known.
    pub(crate) fn of_split(
        &self,
        data: &RunSamples,
        split: EvalSet,
        corrupt: OnCorrupt,
    ) -> Result<LabelledVectors, HeadsError> {
        self.labelled(&data.ids_of(split), |id| data.class_of(id), corrupt)
    }

    /// Reads the vectors of the samples whose pseudo-labels can be evaluated.
    pub(crate) fn evaluated_unlabelled(
        &self,
        data: &RunSamples,
        ids: &[u64],
    ) -> Result<LabelledVectors, HeadsError> {
        let any = OnCorrupt::Skip { share: 1.0 };
        self.labelled(ids, |id| data.evaluated_class(id), any)
    }

    fn labelled(
        &self,
        ids: &[u64],
        class: impl Fn(u64) -> Result<Option<u32>, DataError>,
        corrupt: OnCorrupt,
    ) -> Result<LabelledVectors, HeadsError> {
        let mut found = LabelledVectors::default();
        for &id in ids {
            match class(id)? {
                _ if !self.has(id) => found.skipped.push(skipped_sample(id)),
                Some(label) => {
                    found.ids.push(id);
                    found.labels.push(label);
                    self.read_clean(id, &mut found.vectors)?;
                }
                None => {}
            }
        }
        check_skipped(ids.len(), &found.skipped, corrupt)?;
        Ok(found)
    }

    /// Returns the rows to train on, and the samples that are skipped because they have no vectors.
    pub(crate) fn training_rows(
        &self,
        data: &RunSamples,
        corrupt: OnCorrupt,
    ) -> Result<(TrainingRows, Vec<SkippedSample>), HeadsError> {
        let mut skipped = Vec::new();
        let mut rows = |ids: &[u64]| {
            let mut rows = Vec::with_capacity(ids.len());
            for &id in ids {
                match self.training.ids.binary_search(&id) {
                    Ok(row) => rows.push(row),
                    Err(_) => skipped.push(skipped_sample(id)),
                }
            }
            rows
        };
        let labelled = rows(data.labelled());
        let unlabelled = rows(&data.unlabelled_ids());
        skipped.sort_by_key(|sample| sample.id);
        skipped.dedup_by_key(|sample| sample.id);
        check_skipped(self.training.ids.len() + skipped.len(), &skipped, corrupt)?;
        Ok((TrainingRows { labelled, unlabelled }, skipped))
    }
}

/// Refuses more samples without vectors than the recipe allows.
fn check_skipped(all: usize, skipped: &[SkippedSample], corrupt: OnCorrupt) -> Result<(), HeadsError> {
    if let (OnCorrupt::Stop, Some(first)) = (corrupt, skipped.first()) {
        let problem = FormatProblem::Format(first.problem.clone());
        return Err(DataError::View { id: first.id, problem }.into());
    }
    Ok(Tally::default().add(all, skipped, corrupt)?)
}

fn skipped_sample(id: u64) -> SkippedSample {
    let problem = "it has no features, because its image could not be read";
    SkippedSample { row: 0, id, problem: problem.to_owned() }
}
