//! How a run that trains a head on frozen features ends.
//!
//! At the end five more heads are trained, each without a fifth of the labels: what each says of its fifth fits the
//! temperature, so that no label is lost to judging. A head that learns from the labels alone is trained in the same way,
//! and the better of the two by out-of-fold NLL is the result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use calmix_core::calibration::confidence_map::MapKind;
use calmix_core::calibration::temperature::Temperature;
use calmix_core::labelled_samples::LabelledSamples;
use calmix_core::mixup::Pairing;
use calmix_core::pseudo::Base;
use calmix_core::rng::{Domain, Seed};
use calmix_core::samples::Samples;
use calmix_dist::ProcessGroup;
use calmix_engine::engine::{Engine, Settings, Weights};
use calmix_run::calibration_map::{CalibrationMap, Fitted, TrainingLabels, Uncalibrated};
use calmix_run::evaluate::Predictions;
use calmix_run::events::{EvalModel, EvalSet, Evaluation};
use calmix_run::held_out::HeldOut;
use calmix_run::result::{HeadChoice, HeadFigures, KeptHead};

use super::checkpoint_files::RunProgress;
use super::engine_settings::settings;
use super::error::TrainError;
use super::evaluate::{EvalMode, evaluate_model};
use super::event_writer::EventWriter;
use super::finish::Judgement;
use super::frozen_features::HeadInput;
use super::layout::ParallelLayout;
use super::report::StepResult;
use super::sync::{Heartbeat, StragglerDetector};
use super::train_data::TrainData;
use super::train_loop::{TrainLoop, TrainState};
use crate::recipe::{Recipe, Resolved};

/// Heads that are trained without a part of the labels.
const FOLDS: usize = 5;

impl TrainState {
    /// The state of a run before its first step.
    pub(super) fn initial(
        recipe: &Recipe,
        settings: Settings,
        data: &TrainData,
        layout: &ParallelLayout,
    ) -> Result<Self, TrainError> {
        let (method, classes) = (recipe.method, data.classes.len());
        Ok(Self {
            engine: Engine::new(settings, Seed(recipe.train.seed))?,
            method: method.initial_state(classes, data.unlabelled()),
            labelled: LabelledSamples::new(&method, data.labelled()),
            samples: Samples::try_new(&method, classes, &data.shard_lengths(recipe, layout))?,
            skips: 0,
        })
    }
}

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
    /// Judges the head of this run and one that learnt from labels alone, and evaluates both; the better one is the result.
    pub(super) fn conclude_head(&mut self, head: &HeadInput) -> Result<ConcludedHead, TrainError> {
        let recipe = self.resolved.clone();
        let own = self.judged(&recipe, head, &self.data, None)?;
        let supervised = match supervised(&recipe) {
            Some(recipe) => {
                let data = self.data.labelled_alone();
                let engine = self.quiet(&recipe, head, data.clone())?.train_quietly()?;
                Some(self.judged(&recipe, head, &data, Some(engine))?)
            }
            None => None,
        };
        let keeps_supervised = supervised
            .as_ref()
            .is_some_and(|other| other.nll().zip(own.nll()).is_some_and(|(other, own)| other < own));
        let mut heads = vec![own];
        heads.extend(supervised);
        let outputs = heads.iter().map(|head| {
            let engine = head.engine.as_ref().unwrap_or(&self.state.engine);
            let mode = head.fitted.map().map_or(EvalMode::Final, EvalMode::With);
            let (model, stop) = ((self.step, EvalModel::Ema), self.eval_stop());
            evaluate_model(engine, &recipe.recipe, &self.data, model, mode, stop)
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
            HeadChoice { kept, semi_supervised, supervised }
        });
        let (Some(head), Some(output)) = (heads.get(kept), outputs.get(kept)) else {
            return Err(TrainError::Unsupported("a run without a head".to_owned()));
        };
        self.tell_evaluation(output)?;
        self.events.predictions(&head.out_of_fold)?;
        let mut judgement = Judgement::of(output)?;
        judgement.fitted = Some(head.fitted.clone());
        if let Some(map) = head.fitted.map() {
            judgement.held_out = Some(HeldOut::of(&head.out_of_fold, &map.map)?);
        }
        let engine = head.engine.as_ref().unwrap_or(&self.state.engine);
        Ok(ConcludedHead { weights: engine.snapshot()?.ema, judgement, choice })
    }

    /// Trains a head for each fold without its labels, and fits a temperature to what it says of them.
    fn judged(
        &self,
        recipe: &Resolved,
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
        for fold in folds(data, Seed(recipe.recipe.train.seed)) {
            let engine = self.quiet(recipe, head, data.without(&fold))?.train_quietly()?;
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

    /// A loop that trains another head on the same features and writes nothing.
    fn quiet(
        &self,
        recipe: &Resolved,
        head: &HeadInput,
        data: TrainData,
    ) -> Result<TrainLoop<'_>, TrainError> {
        let layout = ParallelLayout::new(ProcessGroup::alone(), &recipe.recipe)?;
        let settings = settings(&recipe.recipe, data.classes.len(), Some(head))?;
        Ok(TrainLoop {
            state: TrainState::initial(&recipe.recipe, settings, &data, &layout)?,
            method: recipe.recipe.method,
            partition: layout.partition(),
            events: EventWriter::silent(&recipe.recipe),
            resolved: recipe.clone(),
            head: None,
            data,
            layout,
            progress: RunProgress::default(),
            checkpoints: None,
            disk: Arc::clone(&self.disk),
            identity: self.identity.clone(),
            step: 0,
            saved: None,
            stop: self.stop,
            stop_heard: false,
            busy: Duration::ZERO,
            stragglers: StragglerDetector::default(),
            left_out: BTreeMap::new(),
            watch: self.watch.clone(),
            warn: Arc::clone(&self.warn),
        })
    }

    /// Trains to the end without a word.
    fn train_quietly(mut self) -> Result<Engine, TrainError> {
        let recipe = self.resolved.recipe.clone();
        let mut batches = self.data.batches(&recipe, &self.layout, 0..recipe.train.steps)?;
        while self.step < recipe.train.steps {
            if self.stop_requested() {
                return Err(TrainError::Abandoned);
            }
            let batch = self.next_batch(&mut batches)?;
            if let StepResult::Lost = self.step(&batch, Heartbeat::default())? {
                return Err(TrainError::Abandoned);
            }
            self.step = batch.step + 1;
        }
        drop(batches);
        Ok(self.state.engine)
    }
}

impl JudgedHead {
    /// The NLL of labels that neither trained the head nor fitted its temperature.
    fn nll(&self) -> Option<f64> {
        self.fitted.map().map(|map| map.calibrated.nll)
    }

    fn temperature(&self) -> Option<f64> {
        self.fitted.map().and_then(CalibrationMap::temperature).map(Temperature::value)
    }
}

/// The recipe of a head that learns from the labels alone; none where the recipe's own does.
fn supervised(recipe: &Resolved) -> Option<Resolved> {
    let method = &recipe.recipe.method;
    if method.base == Base::Supervised && method.mixup().is_none() {
        return None;
    }
    let mut recipe = recipe.clone();
    recipe.recipe.method.base = Base::Supervised;
    recipe.recipe.method.mixup.pairing = Pairing::None;
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
