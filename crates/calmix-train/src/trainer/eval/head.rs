//! The end of a run that trains a head on frozen features.
//!
//! At the end more heads are trained, each without a fold of the labels: the temperature is fitted on their predictions, so
//! that no label is lost to evaluation. A head that is trained on the labels alone is evaluated in the same way, and is the
//! result if the labels out of fold are more likely under it by more than a standard error. The heads of folds have fewer
//! labels than the one they evaluate, which hurts a method more that trains on its own pseudo-labels: if the difference is not
//! clear, the recipe's head is the better choice. If the dataset has a validation split, its labels evaluate both heads, and
//! there are no folds.

use std::collections::BTreeMap;

use calmix_core::mixup::Pairing;
use calmix_core::pseudo::Base;
use calmix_core::rng::{Domain, Seed};
use calmix_dist::ProcessGroup;
use calmix_engine::engine::{Engine, Weights};
use calmix_metrics::calibrator::any_calibrator::CalibratorKind;
use calmix_metrics::calibrator::is_clearly_lower;
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::fitted_calibrator::{Fitted, FittedCalibrator, FittedOn, TrainingLabels, Uncalibrated};
use calmix_metrics::measure::nll_of_rows;
use calmix_metrics::predictions::Predictions;
use calmix_metrics::predictions::{EvalModel, EvalSet};
use calmix_metrics::stats::{Estimate, paired_t_test};
use calmix_recipe::Recipe;
use calmix_run::result::{HeadCandidate, HeadChoice, HeadName};

use super::evaluate::{EvalMode, EvalOutput, evaluate_model, predict};
use crate::trainer::data::frozen_features::HeadInput;
use crate::trainer::data::next_batch::next_batch;
use crate::trainer::data::train_data::TrainData;
use crate::trainer::error::TrainError;
use crate::trainer::ranks::eval_stop::EvalStop;
use crate::trainer::ranks::layout::ParallelLayout;
use crate::trainer::ranks::sync::Heartbeat;
use crate::trainer::step::engine_settings::settings;
use crate::trainer::step::stepper::Stepper;

/// The confidence level of the interval of the difference between two heads.
const LEVEL: f64 = 0.95;

/// A head, and its predictions for labels that it was trained without.
struct EvaluatedHead {
    /// The head; `None` for that of the run itself.
    engine: Option<Engine>,
    /// Its predictions on the validation split, or those of the heads of folds for the labels.
    said: Predictions,
    fitted: Fitted,
    /// The NLL of each of these labels by a calibrator that was fitted without it.
    nll: Vec<f64>,
}

/// The result of a run on frozen features.
pub(crate) struct ConcludedHead {
    pub(crate) weights: Vec<u8>,
    /// The evaluation of the head that is kept.
    pub(crate) output: EvalOutput,
    pub(crate) choice: Option<HeadChoice>,
}

/// Compares the head of this run with one that is trained on the labels alone, and evaluates both; one of them is the result.
pub(crate) fn conclude_head(
    stepper: &Stepper,
    input: &HeadInput,
    stop: EvalStop<'_>,
) -> Result<ConcludedHead, TrainError> {
    HeadTrainer { stepper, input, stop }.conclude()
}

/// Trains and evaluates heads on the features of a run.
struct HeadTrainer<'a> {
    /// Starts with the head of the run itself.
    stepper: &'a Stepper,
    input: &'a HeadInput,
    stop: EvalStop<'a>,
}

impl HeadTrainer<'_> {
    fn conclude(&self) -> Result<ConcludedHead, TrainError> {
        let (recipe, data) = (self.stepper.recipe.clone(), self.stepper.data.clone());
        let own = self.evaluated(&recipe, &data, None)?;
        let labels_alone = match labels_alone(&recipe) {
            Some(recipe) => {
                let data = data.labelled_alone();
                let engine = self.train_head(&recipe, data.clone())?;
                Some(self.evaluated(&recipe, &data, Some(engine))?)
            }
            None => None,
        };
        let nll_difference = labels_alone.as_ref().and_then(|other| own.nll_above(other));
        let keeps_labels_alone =
            labels_alone.as_ref().is_some_and(|other| other.is_clearly_better_than(&own));
        let mut heads = vec![own];
        heads.extend(labels_alone);
        let outputs = heads.iter().map(|head| {
            let engine = head.engine.as_ref().unwrap_or(&self.stepper.state.engine);
            let out_of_fold =
                Some(&head.said).filter(|said| said.split == EvalSet::OutOfFold && !said.ids.is_empty());
            let mode = EvalMode::With { fitted: &head.fitted, out_of_fold };
            let model = (self.stop.step, EvalModel::Ema);
            evaluate_model(engine, &recipe, &data, model, mode, self.stop)
        });
        let mut outputs = outputs.collect::<Result<Vec<_>, TrainError>>()?;
        let mut candidates = Vec::new();
        let names = [HeadName::Recipe, HeadName::LabelsAlone];
        for ((name, head), output) in names.into_iter().zip(&heads).zip(&outputs) {
            let evaluations = output.evaluations.iter().cloned();
            candidates.push(HeadCandidate {
                name,
                kept: (name == HeadName::LabelsAlone) == keeps_labels_alone,
                nll: head.mean_nll(),
                temperature: head.temperature(),
                evaluations: evaluations.map(Evaluation::without_lists).collect(),
            });
        }
        let choice = (candidates.len() > 1).then(|| {
            let chosen_on = heads.first().map_or(EvalSet::OutOfFold, |head| head.said.split);
            HeadChoice { chosen_on, nll_difference, candidates }
        });
        let kept = usize::from(keeps_labels_alone);
        let Some(head) = heads.get(kept) else {
            return Err(TrainError::Unsupported("this run does not train a head".to_owned()));
        };
        let engine = head.engine.as_ref().unwrap_or(&self.stepper.state.engine);
        let weights = engine.snapshot()?.ema;
        Ok(ConcludedHead { weights, output: outputs.swap_remove(kept), choice })
    }

    /// Fits a calibrator on the predictions of a head for the validation split if the dataset has one, else on those of the
    /// heads of folds for the labels.
    fn evaluated(
        &self,
        recipe: &Recipe,
        data: &TrainData,
        engine: Option<Engine>,
    ) -> Result<EvaluatedHead, TrainError> {
        let least = CalibratorKind::Temperature.least_labels();
        let said = if data.validation() >= least as u64 {
            let own = engine.as_ref().unwrap_or(&self.stepper.state.engine);
            let (split, model) = (EvalSet::Validation, (self.stop.step, EvalModel::Ema));
            predict(own, recipe, data, split, model, self.stop)?.map(|(said, _)| said)
        } else {
            None
        };
        let said = match said {
            Some(said) => said,
            None => self.out_of_fold(recipe, data)?,
        };
        let fitted = if said.labels.len() < least {
            let (held_out, least) = (said.labels.len() as u64, least as u64);
            Fitted::Nothing(Uncalibrated { held_out, least, training_labels: TrainingLabels::TooFew })
        } else if said.split == EvalSet::Validation {
            Fitted::Map(Box::new(FittedCalibrator::fit(&said, FittedOn::ValidationSplit)?))
        } else {
            Fitted::Map(Box::new(FittedCalibrator::fit_out_of_fold(&said)?))
        };
        let nll = match fitted.map() {
            Some(map) => map.cross_fit(&said)?.nll,
            None => nll_of_rows(said.matrix()?, &said.labels, 1.0)?,
        };
        Ok(EvaluatedHead { engine, said, fitted, nll })
    }

    /// Trains a head for each fold without its labels; returns the predictions for these labels, by ascending id.
    fn out_of_fold(&self, recipe: &Recipe, data: &TrainData) -> Result<Predictions, TrainError> {
        let mut rows: BTreeMap<u64, (u32, Vec<f32>)> = BTreeMap::new();
        for fold in folds(data, recipe.network.folds, Seed(recipe.train.seed)) {
            let engine = self.train_head(recipe, data.without(&fold))?;
            let logits = engine.predict(&data.clean_rows(&fold)?, Weights::Ema)?.logits;
            for (&id, row) in fold.iter().zip(logits.chunks_exact(data.classes.len().max(1))) {
                rows.extend(data.class_of(id).map(|class| (id, (class, row.to_vec()))));
            }
        }
        let mut said = Predictions {
            step: self.stop.step,
            split: EvalSet::OutOfFold,
            model: EvalModel::Ema,
            classes: data.classes.clone(),
            ids: Vec::new(),
            labels: Vec::new(),
            logits: Vec::new(),
        };
        for (id, (label, row)) in rows {
            said.ids.push(id);
            said.labels.push(label);
            said.logits.extend(row);
        }
        Ok(said)
    }

    /// Trains another head on the same features from its beginning to its end.
    fn train_head(&self, recipe: &Recipe, data: TrainData) -> Result<Engine, TrainError> {
        let layout = ParallelLayout::new(ProcessGroup::alone(), recipe)?;
        let settings = settings(recipe, data.classes.len(), Some(self.input))?;
        let watch = self.stepper.watch.clone();
        let mut stepper = Stepper::new(recipe.clone(), settings, data, layout, watch)?;
        let steps = recipe.train.steps;
        let mut batches = stepper.data.batches(recipe, &stepper.layout, 0..steps)?;
        for step in 0..steps {
            if self.stop.is_requested() {
                return Err(TrainError::Abandoned);
            }
            let batch = next_batch(&mut batches, step, &stepper.layout.processes, self.stop.requested)?;
            stepper.step(&batch, Heartbeat::default())?;
        }
        drop(batches);
        Ok(stepper.state.engine)
    }
}

impl EvaluatedHead {
    /// The NLL of labels that neither trained the head nor fitted its calibrator.
    fn mean_nll(&self) -> Option<f64> {
        (!self.nll.is_empty()).then(|| self.nll.iter().sum::<f64>() / self.nll.len() as f64)
    }

    /// The difference between this NLL and that of another head, with its interval.
    fn nll_above(&self, other: &Self) -> Option<Estimate> {
        let same = self.said.ids == other.said.ids;
        let test = paired_t_test(&other.nll, &self.nll, LEVEL).ok().filter(|_| same)?;
        Some(test.difference)
    }

    /// Whether the labels are more likely under this head than under another by more than a standard error.
    fn is_clearly_better_than(&self, other: &Self) -> bool {
        self.said.ids == other.said.ids && is_clearly_lower(&self.nll, &other.nll)
    }

    fn temperature(&self) -> Option<f64> {
        self.fitted.map().and_then(FittedCalibrator::temperature).map(Temperature::value)
    }
}

/// The recipe of a head that is trained on the labels alone; `None` if the recipe's own is, or the recipe does not request one.
fn labels_alone(recipe: &Recipe) -> Option<Recipe> {
    let method = &recipe.method;
    let is_alone = method.base == Base::Supervised && method.mixup().is_none();
    if is_alone || !recipe.network.labels_alone {
        return None;
    }
    let mut recipe = recipe.clone();
    recipe.method.base = Base::Supervised;
    recipe.method.mixup.pairing = Pairing::None;
    Some(recipe)
}

/// The labelled samples in folds, each ascending, and each class spread over as many as it has labels for. A class with
/// one label keeps it.
fn folds(data: &TrainData, wanted: u32, seed: Seed) -> Vec<Vec<u64>> {
    let mut classes: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for &id in data.labelled() {
        classes.entry(data.class_of(id).unwrap_or(u32::MAX)).or_default().push(id);
    }
    let mut folds = vec![Vec::new(); wanted as usize];
    let mut next = 0..;
    for mut ids in classes.into_values().filter(|ids| ids.len() > 1) {
        ids.sort_by_cached_key(|&id| seed.stream(Domain::Fold, 0, id).next_u64());
        for (id, place) in ids.into_iter().zip(&mut next) {
            let fold: usize = place % folds.len().max(1);
            folds.get_mut(fold).into_iter().for_each(|fold| fold.push(id));
        }
    }
    for fold in &mut folds {
        fold.sort_unstable();
    }
    folds.retain(|fold| !fold.is_empty());
    folds
}
