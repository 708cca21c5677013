//! How a run that trains a head on frozen features ends.
//!
//! At the end five more heads are trained, each without a fifth of the labels: what each says of its fifth fits the
//! temperature, so that no label is lost to judging. A head that learns from the labels alone is trained in the same way,
//! and is the result where its out-of-fold NLL is clearly lower. The heads of folds have fewer labels than the one they judge, and
//! that costs a method more that builds on its own pseudo-labels: where it is not clear, the recipe's head is the better guess.

use std::collections::BTreeMap;

use calmix_core::calibration::confidence_map::MapKind;
use calmix_core::calibration::nll_of_rows;
use calmix_core::calibration::temperature::Temperature;
use calmix_core::mixup::Pairing;
use calmix_core::pseudo::Base;
use calmix_core::rng::{Domain, Seed};
use calmix_core::stats::{Interval, paired_t_test};
use calmix_dist::ProcessGroup;
use calmix_engine::engine::{Engine, Weights};
use calmix_run::calibration_map::{CalibrationMap, Fitted, TrainingLabels, Uncalibrated};
use calmix_run::evaluate::Predictions;
use calmix_run::events::{EvalModel, EvalSet, Evaluation};
use calmix_run::held_out;
use calmix_run::result::{HeadChoice, HeadFigures, KeptHead};

use super::engine_settings::settings;
use super::error::TrainError;
use super::evaluate::{EvalMode, evaluate_model};
use super::finish::Judgement;
use super::frozen_features::HeadInput;
use super::layout::ParallelLayout;
use super::stepper::Stepper;
use super::sync::Heartbeat;
use super::train_data::TrainData;
use super::train_loop::TrainLoop;
use crate::recipe::Recipe;

/// Heads that are trained without a part of the labels.
const FOLDS: usize = 5;
/// How sure it has to be that a head is worse than one that learnt from the labels alone.
const LEVEL: f64 = 0.95;

/// A head, and what is known of it from labels that it was trained without.
struct JudgedHead {
    engine: Option<Engine>,
    out_of_fold: Predictions,
    fitted: Fitted,
}

/// What a run on frozen features ends with.
pub(super) struct ConcludedHead {
    pub(super) weights: Vec<u8>,
    pub(super) judgement: Judgement,
    pub(super) choice: Option<HeadChoice>,
}

impl TrainLoop<'_> {
    /// Judges the head of this run and one that learnt from labels alone, and evaluates both; one of them is the result.
    pub(super) fn conclude_head(&mut self, head: &HeadInput) -> Result<ConcludedHead, TrainError> {
        let (recipe, data) = (self.stepper.recipe.clone(), self.stepper.data.clone());
        let own = self.judged(&recipe, head, &data, None)?;
        let supervised = match supervised(&recipe) {
            Some(recipe) => {
                let data = data.labelled_alone();
                let engine = self.train_head(&recipe, head, data.clone())?;
                Some(self.judged(&recipe, head, &data, Some(engine))?)
            }
            None => None,
        };
        let nll_difference = supervised.as_ref().and_then(|other| own.nll_above(other));
        let keeps_supervised = HeadChoice::helped(nll_difference.as_ref()) == Some(false);
        let mut heads = vec![own];
        heads.extend(supervised);
        let outputs = heads.iter().map(|head| {
            let engine = head.engine.as_ref().unwrap_or(&self.stepper.state.engine);
            let mode = head.fitted.map().map_or(EvalMode::Final, EvalMode::With);
            let (model, stop) = ((self.step, EvalModel::Ema), self.eval_stop());
            evaluate_model(engine, &recipe, &data, model, mode, stop)
        });
        let outputs = outputs.collect::<Result<Vec<_>, TrainError>>()?;
        let kept = usize::from(keeps_supervised);
        let figures = |n: usize| -> Option<HeadFigures> {
            let evaluations = outputs.get(n)?.evaluations.iter().cloned();
            let (nll, temperature) = (heads.get(n)?.nll(), heads.get(n)?.temperature());
            let evaluations = evaluations.map(Evaluation::without_lists).collect();
            Some(HeadFigures { out_of_fold_nll: nll, temperature, evaluations })
        };
        let choice = figures(0).zip(figures(1)).map(|(semi_supervised, supervised)| {
            let kept = if keeps_supervised { KeptHead::Supervised } else { KeptHead::SemiSupervised };
            HeadChoice { kept, nll_difference, semi_supervised, supervised }
        });
        let (Some(head), Some(output)) = (heads.get(kept), outputs.get(kept)) else {
            return Err(TrainError::Unsupported("a run without a head".to_owned()));
        };
        self.tell_evaluation(output)?;
        self.events.predictions(&head.out_of_fold)?;
        let mut judgement = Judgement::of(output)?;
        judgement.fitted = Some(head.fitted.clone());
        if let Some(map) = head.fitted.map() {
            judgement.held_out = Some(held_out::cross_fitted(&head.out_of_fold, map)?);
        }
        let engine = head.engine.as_ref().unwrap_or(&self.stepper.state.engine);
        Ok(ConcludedHead { weights: engine.snapshot()?.ema, judgement, choice })
    }

    /// Trains a head for each fold without its labels, and fits a temperature to what it says of them.
    fn judged(
        &self,
        recipe: &Recipe,
        head: &HeadInput,
        data: &TrainData,
        engine: Option<Engine>,
    ) -> Result<JudgedHead, TrainError> {
        let classes = data.classes.clone();
        let (step, model, split) = (self.step, EvalModel::Ema, EvalSet::Labelled);
        let mut said = Predictions {
            step,
            split,
            model,
            classes,
            ids: Vec::new(),
            labels: Vec::new(),
            logits: Vec::new(),
        };
        let mut rows: BTreeMap<u64, (u32, Vec<f32>)> = BTreeMap::new();
        for fold in folds(data, Seed(recipe.train.seed)) {
            let engine = self.train_head(recipe, head, data.without(&fold))?;
            let logits = engine.predict(&data.clean_rows(&fold)?, Weights::Ema)?.logits;
            for (&id, row) in fold.iter().zip(logits.chunks_exact(said.classes.len().max(1))) {
                rows.extend(data.class_of(id).map(|class| (id, (class, row.to_vec()))));
            }
        }
        for (id, (label, row)) in rows {
            said.ids.push(id);
            said.labels.push(label);
            said.logits.extend(row);
        }
        let least = MapKind::Temperature.least_labels();
        let fitted = if said.labels.len() >= least {
            Fitted::Map(Box::new(CalibrationMap::fit_out_of_fold(&said)?))
        } else {
            let training_labels = TrainingLabels::TooFew;
            Fitted::Nothing(Uncalibrated {
                held_out: said.labels.len() as u64,
                least: least as u64,
                training_labels,
            })
        };
        Ok(JudgedHead { engine, out_of_fold: said, fitted })
    }

    /// Trains another head on the same features from its beginning to its end.
    fn train_head(&self, recipe: &Recipe, head: &HeadInput, data: TrainData) -> Result<Engine, TrainError> {
        let layout = ParallelLayout::new(ProcessGroup::alone(), recipe)?;
        let settings = settings(recipe, data.classes.len(), Some(head))?;
        let watch = self.stepper.watch.clone();
        let mut stepper = Stepper::new(recipe.clone(), settings, data, layout, watch)?;
        let steps = recipe.train.steps;
        let mut batches = stepper.data.batches(recipe, &stepper.layout, 0..steps)?;
        for step in 0..steps {
            if self.stop_requested() {
                return Err(TrainError::Abandoned);
            }
            let batch = stepper.next_batch(&mut batches, step, self.stop)?;
            stepper.step(&batch, Heartbeat::default())?;
        }
        drop(batches);
        Ok(stepper.state.engine)
    }
}

impl JudgedHead {
    /// The NLL of labels that neither trained the head nor fitted its temperature.
    fn nll(&self) -> Option<f64> {
        self.fitted.map().map(|map| map.calibrated.nll)
    }

    /// By how much this NLL is above that of another head, with its interval.
    fn nll_above(&self, other: &Self) -> Option<Interval> {
        let nll = |head: &Self| {
            let said = &head.out_of_fold;
            nll_of_rows(said.matrix().ok()?, &said.labels, head.temperature()?).ok()
        };
        let same = self.out_of_fold.ids == other.out_of_fold.ids;
        let test = paired_t_test(&nll(other)?, &nll(self)?, LEVEL).ok().filter(|_| same)?;
        Some(test.difference)
    }

    fn temperature(&self) -> Option<f64> {
        self.fitted.map().and_then(CalibrationMap::temperature).map(Temperature::value)
    }
}

/// The recipe of a head that learns from the labels alone; none where the recipe's own does.
fn supervised(recipe: &Recipe) -> Option<Recipe> {
    let method = &recipe.method;
    if method.base == Base::Supervised && method.mixup().is_none() {
        return None;
    }
    let mut recipe = recipe.clone();
    recipe.method.base = Base::Supervised;
    recipe.method.mixup.pairing = Pairing::None;
    Some(recipe)
}

/// The labelled samples in folds, each ascending, and each class spread over as many as it has labels for. A class with
/// one label keeps it.
fn folds(data: &TrainData, seed: Seed) -> Vec<Vec<u64>> {
    let mut classes: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for &id in data.labelled() {
        classes.entry(data.class_of(id).unwrap_or(u32::MAX)).or_default().push(id);
    }
    let mut folds = vec![Vec::new(); FOLDS];
    let mut next = 0;
    for mut ids in classes.into_values().filter(|ids| ids.len() > 1) {
        ids.sort_by_cached_key(|&id| seed.stream(Domain::Fold, 0, id).next_u64());
        for id in ids {
            folds[next % FOLDS].push(id);
            next += 1;
        }
    }
    for fold in &mut folds {
        fold.sort_unstable();
    }
    folds.retain(|fold| !fold.is_empty());
    folds
}
