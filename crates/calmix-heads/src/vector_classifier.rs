//! A classifier of vectors in memory: trained like a run on vectors, without its files.
//!
//! The samples are numbered as in a run, and pass through the same projection and the same fit: the same vectors, labels and
//! settings give the same bits as `calmix train --features`.

use std::sync::atomic::{AtomicBool, Ordering};

use calmix_core::matrix::Matrix;
use calmix_core::samples::label_weight;
use calmix_data::groups::group_numbers;
pub use calmix_formats::labels::drawn::Drawn;
use calmix_formats::vectors::too_long;
use calmix_head::HeadError;
use calmix_head::fit::{FittedHead, HeadFit, fit};
use calmix_head::model::HeadModel;
use calmix_head::progress::FitProgress;
use calmix_head::projection::Projection;
use calmix_head::samples::{HeadSamples, TrainingRows, check_classes};
use calmix_io::error::FileError;
use calmix_lifecycle::run_samples::{NeededSamples, count_draw};
use calmix_lifecycle::splits::{drawn_unlabelled, reference_ids};
use calmix_lifecycle::start::{FILE_CONTENTS, view_settings};
use calmix_metrics::held_out::{self, LabelLogits};
use calmix_metrics::shift::Reference;
use calmix_recipe::{Layers, Recipe};
use calmix_run::label_draws::LabelDraws;
use calmix_run::model_info::ModelInfo;
use calmix_run::tensor_files::head_files::head_bytes;
use calmix_run::tensor_files::reference_file;

use crate::error::HeadsError;
use crate::head_memory::HeadMemory;
use crate::head_settings::head_settings;
use crate::label_copies::{CopySearch, LabelCopies};
use crate::label_weights::label_weights;
use crate::read_vectors::vector_head_info;
use crate::reference_features::reference_features;
use crate::vector_table::{BLOCK_ROWS, fit_projection, fitted_stride, project};

/// Vectors and labels to train a classifier on.
#[derive(Debug, Clone, Copy)]
pub struct LabelledVectors<'a> {
    /// One row per sample: its vector, then its further views if there are any.
    pub vectors: Matrix<'a>,
    pub views: usize,
    /// The class of each sample; `None` if it has no label.
    pub labels: &'a [Option<u32>],
    pub classes: &'a [String],
    /// The number of the [group](calmix_data::groups) of each sample; empty if each is a group of its own.
    pub groups: &'a [u32],
    /// How the label of each sample was drawn; empty if it is not known of any.
    pub drawn: &'a [Drawn],
    /// The weight of the label of each sample in training; empty if all are 1.
    pub weights: &'a [f64],
    /// The widths of the sets of features that a vector consists of; empty for one set.
    pub sets: &'a [usize],
}

/// A classifier that was trained on vectors in memory.
#[derive(Debug)]
pub struct VectorClassifier {
    /// The selected head with its projection.
    pub model: HeadModel,
    /// Its classes, calibrator and held-out labels, as in `model.json` of a run.
    pub info: ModelInfo,
    /// The bytes of `reference.safetensors`, with which new samples are compared; `None` without held-out labels and with too few
    /// unlabelled samples.
    pub reference: Option<Vec<u8>>,
    pub fit: HeadFit,
    /// The row of each sample, by its id: labelled rows come first, as in a run.
    pub rows: Vec<usize>,
    pub copies: LabelCopies,
}

/// Returns the recipe of a classifier: the built-in `vectors` with the user's settings, for samples with this number of views.
pub fn recipe(settings: Layers, views: usize) -> Result<Recipe, HeadsError> {
    let resolved = settings.decided(FILE_CONTENTS, view_settings(views)).resolve()?;
    Ok(resolved.recipe)
}

impl LabelledVectors<'_> {
    /// Refuses lists that do not have an entry per sample, and weights that cannot be used.
    fn check(&self) -> Result<(), HeadsError> {
        let lists =
            [("groups", self.groups.len()), ("draws", self.drawn.len()), ("weights", self.weights.len())];
        for (what, length) in lists {
            if length != 0 && length != self.labels.len() {
                let problem = format!("{length} {what} for {} samples", self.labels.len());
                return Err(HeadsError::unsupported(problem));
            }
        }
        for (row, &weight) in self.weights.iter().enumerate() {
            if let Some(problem) = label_weight::why_not(weight) {
                return Err(HeadsError::unsupported(format!("row {row}: {problem}")));
            }
        }
        Ok(())
    }
}

impl VectorClassifier {
    /// Trains all heads on `threads` threads, and selects one as a run does. The result does not depend on the number of threads.
    ///
    /// # Errors
    /// If the input contradicts itself, a number is not finite, a vector is too long, or a setting does not apply;
    /// [`HeadsError::Stopped`] if `stop` becomes true.
    pub fn fit(
        samples: LabelledVectors<'_>,
        recipe: &Recipe,
        threads: usize,
        stop: &AtomicBool,
    ) -> Result<Self, HeadsError> {
        let LabelledVectors { vectors, views, labels, classes, groups, drawn, weights, sets } = samples;
        samples.check()?;
        let rows = rows_by_id(labels);
        let training = training_ids(labels, recipe);
        let width = vectors.width() / views.max(1);
        // Check every view, including those that are not projected until later.
        for (row, vector) in vectors.iter().enumerate() {
            if let Some(problem) = vector.chunks_exact(width.max(1)).find_map(too_long) {
                return Err(HeadsError::unsupported(format!("row {row}: {problem}")));
            }
        }
        let unlabelled: Vec<u64> =
            training.rows.unlabelled.iter().map(|&place| training.ids[place]).collect();
        let labelled = &training.ids[..training.rows.labelled.len()];
        let needed = NeededSamples {
            training: training.ids.clone(),
            reference: reference_ids(&unlabelled, labelled),
            evaluation: Vec::new(),
            labelled: training.rows.labelled.len(),
            validation: 0,
        };
        check_classes(needed.labelled, classes.len())?;
        HeadMemory::of(recipe, &needed, width, classes.len()).check()?;
        let clean = |id: &u64| vectors.row(rows[*id as usize]).get(..width).unwrap_or_default();
        let fitted_on = needed.fitted();
        let fitted_on = fitted_on.iter().step_by(fitted_stride(fitted_on.len()));
        let fitted_on: Vec<f32> = fitted_on.flat_map(clean).copied().collect();
        let projection = fit_projection(&fitted_on, width, sets, recipe.network.dimensions as usize, stop)?;
        // Free the copy before the projected vectors are allocated.
        drop(fitted_on);
        let mut copies = LabelCopies::default();
        if LabelCopies::are_searched(recipe, !groups.is_empty()) {
            let search = CopySearch { labelled, unlabelled: &unlabelled, projection: &projection, stop };
            let read = |id: u64, numbers: &mut Vec<f32>| {
                numbers.extend_from_slice(clean(&id));
                Ok(())
            };
            copies = search.by_features(|id| Ok(labels[rows[id as usize]]), read)?;
        }
        let mut projected = Vec::with_capacity(training.ids.len() * views * projection.dimensions());
        let mut block = Vec::new();
        for ids in training.ids.chunks((BLOCK_ROWS / views.max(1)).max(1)) {
            HeadsError::check_stop(stop)?;
            block.clear();
            for &id in ids {
                block.extend_from_slice(vectors.row(rows[id as usize]));
            }
            project(&projection, &block, &mut projected)?;
        }
        let labels: Vec<Option<u32>> = training.ids.iter().map(|&id| labels[rows[id as usize]]).collect();
        let mut own_weights = Vec::new();
        if !weights.is_empty() {
            own_weights.extend(training.ids.iter().map(|&id| weights[rows[id as usize]]));
        }
        let weights = label_weights(&labels, &own_weights, recipe.labels.class_weight);
        let groups: Vec<Option<u32>> =
            training.ids.iter().map(|&id| groups.get(rows[id as usize]).copied()).collect();
        // Samples are numbered as in a run, because random draws depend on their ids.
        let groups =
            if samples.groups.is_empty() { copies.groups_of(&training.ids) } else { group_numbers(&groups) };
        let drawn = |place: usize| drawn.get(rows[training.ids[place] as usize]).copied().unwrap_or_default();
        let labelled = training.rows.labelled.iter().copied();
        let chosen: Vec<usize> = labelled.clone().filter(|&place| !drawn(place).may_be_held_out()).collect();
        let mut draws = LabelDraws::default();
        labelled.for_each(|place| count_draw(&mut draws, drawn(place)));
        let head_samples = HeadSamples {
            ids: &training.ids,
            vectors: Matrix::new(&projected, training.ids.len(), views * projection.dimensions())?.into(),
            weak: recipe.network.weak_views as u8,
            strong: recipe.network.strong_views as u8,
            labels: &labels,
            classes,
            groups: &groups,
            chosen: &chosen,
            weights: &weights,
        };
        let progress = FitProgress::new(stop);
        let settings = head_settings(recipe);
        let fit = fit(head_samples, &training.rows, None, &settings, threads, &progress)?;
        let Some(kept) = fit.head() else {
            return Err(HeadsError::unsupported("no head was trained".to_owned()));
        };
        let features =
            reference_features(&head_samples, &training.rows, &needed.reference, kept, &projection, stop)?;
        let (info, labels) = model_info(recipe, classes, &projection, kept, stop)?;
        let reference = Reference { labels, features };
        let reference = reference_file::to_bytes(&reference)
            .map_err(|problem| FileError::new("reference.safetensors", problem))?;
        let hash = reference.as_deref().map(ModelInfo::hash).unwrap_or_default();
        let info = ModelInfo { label_draws: draws, reference: hash, ..info };
        let model = HeadModel::new(projection, kept.trained.ema.clone())?;
        Ok(Self { model, info, reference, fit, rows, copies })
    }
}

/// Lists the rows in the order of a run's samples: labelled ones, then the others.
fn rows_by_id(labels: &[Option<u32>]) -> Vec<usize> {
    let (mut rows, unlabelled): (Vec<usize>, Vec<usize>) =
        (0..labels.len()).partition(|&row| labels[row].is_some());
    rows.extend(unlabelled);
    rows
}

struct TrainingIds {
    /// The ids of the training samples, ascending.
    ids: Vec<u64>,
    /// The positions in `ids` of the labelled and the unlabelled samples.
    rows: TrainingRows,
}

/// Selects the labelled samples, and as many unlabelled ones as the recipe sets.
fn training_ids(labels: &[Option<u32>], recipe: &Recipe) -> TrainingIds {
    let labelled = labels.iter().flatten().count();
    let first = if recipe.labels.include_labelled { 0 } else { labelled as u64 };
    let all: Vec<u64> = (first..labels.len() as u64).collect();
    let count = recipe.unlabelled_samples(all.len() as u64);
    let unlabelled = drawn_unlabelled(all, count);
    let mut ids: Vec<u64> = (0..labelled as u64).collect();
    ids.extend(unlabelled.iter().filter(|&&id| id >= labelled as u64));
    let places = unlabelled.iter().filter_map(|id| ids.binary_search(id).ok()).collect();
    TrainingIds { rows: TrainingRows { labelled: (0..labelled).collect(), unlabelled: places }, ids }
}

/// Describes a head as `model.json` does. Also returns the logits of its held-out labels.
fn model_info(
    recipe: &Recipe,
    classes: &[String],
    projection: &Projection,
    kept: &FittedHead,
    stop: &AtomicBool,
) -> Result<(ModelInfo, LabelLogits), HeadsError> {
    let mut labels = LabelLogits::default();
    let mut info = ModelInfo::new(recipe, classes, None, &head_bytes(&kept.trained.ema)?);
    info.head = Some(vector_head_info(recipe, projection)?.of_shape(kept.trained.ema.shape()));
    if let Some(calibrator) = kept.calibrator.calibrator() {
        let stop = || stop.load(Ordering::Relaxed);
        let scored =
            held_out::score_with_logits_cross_fitted(&kept.predictions, calibrator, &kept.unseen, &stop);
        let (held_out, label_logits) = scored.map_err(HeadError::from)?;
        info.held_out = Some(held_out);
        labels = label_logits;
        info.calibration = Some(calibrator.clone());
    }
    Ok((info, labels))
}
