//! A run in the hands of this process: the loop, and the order in which things are written.
//!
//! After a step its event is written, then what an evaluation said, then its events, then a checkpoint that knows
//! where the journal ended. Whatever is written after a checkpoint is written again, byte for byte, by a run that
//! continues from it; so a kill between any two writes changes nothing in the end. The checkpoint of the last step
//! is the very last thing that a run writes: where it is, the run is finished.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use calmix_data::augment::Augment;
use calmix_data::error::{DataError, Problem};
use calmix_data::loader::{Batch, Loader};
use calmix_engine::engine::Snapshot as EngineSnapshot;

use super::error::TrainError;
use super::judge::{Care, judge};
use super::kept::{self, Best, Progress};
use super::learner::{Learner, Learnt};
use super::material::Material;
use super::record::Record;
use super::{Outcome, RunResult};
use crate::checkpoint::{Checkpoints, Identity, Snapshot};
use crate::evaluate::{Scaling, Selection, select};
use crate::events::{Event, Finished, Model, Note, Pacer, Reading};
use crate::recipe::Resolved;
use crate::run::RunFile;

pub(super) struct Session<'a> {
    pub(super) resolved: Resolved,
    pub(super) material: Material,
    pub(super) learner: Learner,
    pub(super) progress: Progress,
    pub(super) record: Record<'a>,
    pub(super) checkpoints: Checkpoints,
    pub(super) identity: Identity,
    /// Steps that were done.
    pub(super) step: u64,
    /// The step of the newest checkpoint.
    pub(super) kept: Option<u64>,
    pub(super) stop: &'a AtomicBool,
}

impl Session<'_> {
    /// Trains to the end, or until it is told to stop.
    pub(super) fn run(mut self) -> Result<Outcome, TrainError> {
        let recipe = self.resolved.recipe.clone();
        let total = recipe.train.steps;
        let mut batches = self.material.batches(&recipe, self.step..total, self.progress.tally)?;
        let (began, mut pacer) = (Instant::now(), Pacer::new(self.step, total));
        while self.step < total {
            if self.stop.load(Ordering::Relaxed) {
                self.keep()?;
                self.record.flush()?;
                return Ok(Outcome::Stopped { step: self.step });
            }
            self.next(&mut batches)?;
            if self.is_due(recipe.log.every) {
                let counters = batches.counters();
                let (images, waited) = (counters.images, counters.waited);
                let now = Reading { step: self.step, images, elapsed: began.elapsed(), waited };
                self.record.pace(&pacer.pace(now))?;
            }
            // The last step has an end of its own.
            if self.step < total && self.step.is_multiple_of(recipe.evaluate.every) {
                self.evaluate(Care::Passing)?;
            }
            if self.step < total && self.step.is_multiple_of(recipe.checkpoint.every) {
                match self.keep() {
                    Ok(()) => self.record.recovered(),
                    Err(error) => self.record.failed(error)?,
                }
            }
        }
        drop(batches);
        self.finish()
    }

    fn is_due(&self, every: u64) -> bool {
        self.step.is_multiple_of(every) || self.step == self.resolved.recipe.train.steps
    }

    /// One step.
    fn next(&mut self, batches: &mut Loader<Augment>) -> Result<(), TrainError> {
        let batch = batches
            .next()
            .ok_or_else(|| TrainError::Unsupported(format!("there is no batch for step {}", self.step)))??;
        let before = std::mem::replace(&mut self.progress.tally, batches.tally());
        self.step = batch.step + 1;
        let tell = self.is_due(self.resolved.recipe.log.every);
        let pictures = &self.material.pictures;
        let truth = |id| pictures.label(id).ok().flatten();
        let recipe = &self.resolved.recipe;
        match self.learner.learn(recipe, &batch, tell.then_some(&truth))? {
            Learnt::Skipped(note) => self.record.event(&Event::Note(note))?,
            Learnt::Step(step) => {
                let note = self.progress.starvation.see(&step);
                if tell {
                    self.record.event(&Event::Step(*step))?;
                }
                if let Some(note) = note {
                    self.record.event(&Event::Note(note))?;
                }
            }
        }
        if before.skipped == 0
            && let Some(note) = corrupt(&batch)
        {
            self.record.event(&Event::Note(note))?;
        }
        Ok(())
    }

    /// Judges the network as it is; the temperature of its average, if one was fitted.
    fn evaluate(&mut self, care: Care) -> Result<Option<Scaling>, TrainError> {
        let recipe = &self.resolved.recipe;
        let models = if recipe.evaluate.online { &[Model::Ema, Model::Live][..] } else { &[Model::Ema] };
        let mut scaling = None;
        for &model in models {
            let (engine, step) = (&self.learner.engine, self.step);
            let verdict = judge(engine, recipe, &self.material, (step, model), care)?;
            for seen in &verdict.predictions {
                self.record.predictions(seen)?;
            }
            for evaluation in verdict.evaluations {
                self.record.event(&Event::Evaluation(Box::new(evaluation.clone())))?;
                self.progress.history.push(evaluation);
            }
            if model == Model::Ema {
                scaling = verdict.scaling;
            }
        }
        let best = select(recipe.selection, recipe.evaluate.window as usize, &self.progress.history);
        let now_best = best.is_some_and(|best| best.at_step == Some(self.step));
        if keeps_best(recipe.selection) && now_best {
            let weights = self.learner.engine.snapshot()?.ema;
            self.progress.best = Some(Best { step: self.step, weights });
        }
        Ok(scaling)
    }

    /// Makes a checkpoint of the state as it is, if there is none of it.
    fn keep(&mut self) -> Result<(), TrainError> {
        if self.kept == Some(self.step) || self.step == 0 {
            return Ok(());
        }
        let files = kept::files(self.step, &self.learner, &self.progress, &self.resolved.to_toml())?;
        let committed = self.checkpoints.save(&Snapshot {
            step: self.step,
            identity: self.identity.clone(),
            journal: self.record.mark()?,
            parts: files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect(),
        })?;
        self.kept = Some(self.step);
        if let Some(trouble) = committed.trouble {
            let text = format!("an old checkpoint could not be removed: {trouble}");
            let hint = "the new one is whole; remove the old one by hand".to_owned();
            self.record.aside(Note { step: self.step, text, hint })?;
        }
        Ok(())
    }

    /// The last evaluation, the resulting model and its figures.
    fn finish(mut self) -> Result<Outcome, TrainError> {
        let rule = self.resolved.recipe.selection;
        let care = if keeps_best(rule) { Care::Passing } else { Care::Final };
        let scaling = self.evaluate(care)?;
        let (step, weights, scaling) = match self.progress.best.clone() {
            Some(best) => {
                let scaling = self.judge_best(&best)?;
                (best.step, best.weights, scaling)
            }
            None => (self.step, self.learner.engine.snapshot()?.ema, scaling),
        };
        let window = self.resolved.recipe.evaluate.window as usize;
        let selected = |rule| Some((rule, select(rule, window, &self.progress.history)?));
        // The best on test flatters, so it has to be asked for.
        let rules = [Selection::Last, Selection::Median, Selection::BestValidation, rule];
        let selected: BTreeMap<_, _> = rules.into_iter().filter_map(selected).collect();
        let finished = Finished { step: self.step, selected };
        let result = RunResult {
            step,
            selection: rule,
            classes: self.material.classes.clone(),
            scaling,
            finished: finished.clone(),
        };
        let path = self.record.run().paths().file(RunFile::Result)?;
        let result = serde_json::to_vec_pretty(&result)
            .map_err(|error| DataError::new(path, Problem::Format(error.to_string())))?;
        self.record.last(RunFile::Model, &weights)?;
        self.record.last(RunFile::Result, &result)?;
        self.record.event(&Event::Finished(finished.clone()))?;
        self.progress.finished = Some(finished.clone());
        self.keep()?;
        self.record.flush()?;
        Ok(Outcome::Finished(finished))
    }

    /// Judges the best model in the place of the last one, which then comes back.
    fn judge_best(&mut self, best: &Best) -> Result<Option<Scaling>, TrainError> {
        let engine = &mut self.learner.engine;
        let last = engine.snapshot()?;
        engine.restore(&EngineSnapshot {
            live: best.weights.clone(),
            ema: best.weights.clone(),
            momentum: last.momentum.clone(),
            loss_scale: last.loss_scale,
        })?;
        let recipe = &self.resolved.recipe;
        let verdict = judge(engine, recipe, &self.material, (best.step, Model::Ema), Care::Final);
        engine.restore(&last)?;
        let verdict = verdict?;
        for seen in &verdict.predictions {
            self.record.predictions(seen)?;
        }
        for evaluation in verdict.evaluations {
            self.record.event(&Event::Evaluation(Box::new(evaluation)))?;
        }
        Ok(verdict.scaling)
    }
}

/// Whether the result is the best model of the run rather than the last.
fn keeps_best(rule: Selection) -> bool {
    matches!(rule, Selection::BestValidation | Selection::BestTest)
}

/// The first corrupt sample of a run; from then on they are only counted.
fn corrupt(batch: &Batch) -> Option<Note> {
    let first = batch.skipped.first()?;
    Some(Note {
        step: batch.step + 1,
        text: format!("sample {} is corrupt ({}), and another took its place", first.id, first.problem),
        hint: "repair the dataset, or see how many there are with `prepare`".to_owned(),
    })
}
