//! A run in the hands of this process: the loop, and the order in which things are written.
//!
//! After a step its event is written, then what an evaluation said, then its events, then a checkpoint that knows
//! where the journal ended. Whatever is written after a checkpoint is written again, byte for byte, by a run that
//! continues from it; so a kill between any two writes changes nothing in the end. The checkpoint of the last step
//! is the very last thing that a run writes: where it is, the run is finished.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use calmix_data::augment::Augment;
use calmix_data::error::{DataError, Problem};
use calmix_data::loader::{Loader, Skipped};
use calmix_engine::engine::Snapshot as EngineSnapshot;

use super::accord::{Census, Laggard, Word, astray};
use super::error::TrainError;
use super::judge::{Care, judge};
use super::kept::{Best, Progress};
use super::learner::{Learner, Learnt};
use super::material::Material;
use super::record::Record;
use super::together::from_first;
use super::{Outcome, RunResult};
use crate::checkpoint::{Checkpoints, Identity};
use crate::evaluate::{Scaling, Selection, select};
use crate::events::{Event, Finished, Model, Note, Pacer, Reading};
use crate::recipe::Resolved;
use crate::run::{Disk, RunFile};

pub(super) struct Session<'a> {
    pub(super) resolved: Resolved,
    pub(super) material: Material,
    pub(super) learner: Learner,
    pub(super) progress: Progress,
    pub(super) record: Record<'a>,
    /// With the process that writes.
    pub(super) checkpoints: Option<Checkpoints>,
    /// The disk of the others.
    pub(super) disk: Arc<dyn Disk>,
    pub(super) identity: Identity,
    /// Steps that were done.
    pub(super) step: u64,
    /// The step of the newest checkpoint.
    pub(super) kept: Option<u64>,
    pub(super) stop: &'a AtomicBool,
    /// How long the last step took, waiting for other processes not counted.
    pub(super) busy: Duration,
    pub(super) laggard: Laggard,
}

/// Every how many steps processes compare their weights.
const LOOK_AT_WEIGHTS: u64 = 100;

impl Session<'_> {
    /// Trains to the end, or until it is told to stop.
    pub(super) fn run(mut self) -> Result<Outcome, TrainError> {
        let recipe = self.resolved.recipe.clone();
        let total = recipe.train.steps;
        let mut batches = self.material.batches(&recipe, &self.learner.team, self.step..total)?;
        let (began, mut pacer) = (Instant::now(), Pacer::new(self.step, total));
        let met = self.exchanged();
        while self.step < total {
            if self.is_told_to_stop()? {
                self.keep()?;
                self.record.flush()?;
                return Ok(Outcome::Stopped { step: self.step });
            }
            let (start, waited) = (Instant::now(), self.learner.team.processes.waited());
            self.next(&mut batches)?;
            self.busy =
                start.elapsed().saturating_sub(self.learner.team.processes.waited().saturating_sub(waited));
            if self.is_due(recipe.log.every) {
                let counters = batches.counters();
                let (images, waited) = (counters.images, counters.waited);
                let images = images * self.learner.team.processes.size() as u64;
                let exchanged =
                    self.exchanged().zip(met).map(|(now, met)| (now.0 - met.0, now.1.saturating_sub(met.1)));
                let now = Reading { step: self.step, images, elapsed: began.elapsed(), waited, exchanged };
                self.record.pace(&pacer.pace(now))?;
            }
            // The last step has an end of its own.
            if self.step < total && self.step.is_multiple_of(recipe.evaluate.every) {
                self.evaluate(Care::Passing)?;
            }
            if self.step < total && self.step.is_multiple_of(recipe.checkpoint.every) {
                match self.keep() {
                    Ok(()) => self.record.recovered(),
                    Err(error @ TrainError::Processes(_)) => return Err(error),
                    Err(error) => self.record.failed(error)?,
                }
            }
        }
        drop(batches);
        self.finish()
    }

    /// What was sent to other processes so far, where there are any, and how long it took.
    fn exchanged(&self) -> Option<(u64, Duration)> {
        let processes = &self.learner.team.processes;
        (processes.size() > 1).then(|| (processes.sent(), processes.waited()))
    }

    /// Hears the other processes before a step: whether anybody was told to stop, and whether all are where they should
    /// be.
    fn is_told_to_stop(&mut self) -> Result<bool, TrainError> {
        let processes = &self.learner.team.processes;
        let looks = processes.size() > 1 && self.step.is_multiple_of(LOOK_AT_WEIGHTS);
        let word = Word {
            step: self.step,
            stop: self.stop.load(Ordering::Relaxed),
            busy: self.busy,
            weights: if looks { self.learner.engine.digest()? } else { 0 },
        };
        let words = word.exchange(processes)?;
        astray(&words)?;
        if let Some(note) = self.laggard.hear(&words) {
            self.record.aside(note)?;
        }
        Ok(words.iter().any(|word| word.stop))
    }

    fn is_due(&self, every: u64) -> bool {
        self.step.is_multiple_of(every) || self.step == self.resolved.recipe.train.steps
    }

    /// One step.
    fn next(&mut self, batches: &mut Loader<Augment>) -> Result<(), TrainError> {
        let batch = batches
            .next()
            .ok_or_else(|| TrainError::Unsupported(format!("there is no batch for step {}", self.step)))??;
        self.step = batch.step + 1;
        let tell = self.is_due(self.resolved.recipe.log.every);
        let pictures = &self.material.pictures;
        let truth = |id| pictures.label(id).ok().flatten();
        let recipe = &self.resolved.recipe;
        let learnt = self.learner.learn(recipe, &self.material, &batch, tell.then_some(&truth))?;
        let Census { seen, skipped, .. } = &self.learner.census;
        let skip = |(id, problem): &(u64, String)| Skipped { row: 0, id: *id, problem: problem.clone() };
        let skipped: Vec<Skipped> = skipped.iter().map(skip).collect();
        let first = self.progress.tally.skipped == 0;
        // A batch has as many rows as fit into memory.
        self.progress.tally.add(*seen as usize, &skipped, recipe.loader.corrupt())?;
        match learnt {
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
        if let Some(skipped) = skipped.first().filter(|_| first) {
            let note = corrupt(self.step, skipped);
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
            let verdict =
                judge(engine, &self.learner.team.processes, recipe, &self.material, (step, model), care)?;
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

    /// The last evaluation, the resulting model and its figures.
    fn finish(mut self) -> Result<Outcome, TrainError> {
        let rule = self.resolved.recipe.selection;
        let care = if keeps_best(rule) { Care::Passing } else { Care::Final };
        let scaling = self.evaluate(care)?;
        let (step, weights, scaling) = match self.best_of_all()? {
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
        let result = serde_json::to_vec_pretty(&result)
            .map_err(|error| DataError::new("result.json", Problem::Format(error.to_string())))?;
        let mut write = || -> Result<Finished, TrainError> {
            self.record.last(RunFile::Model, &weights)?;
            self.record.last(RunFile::Result, &result)?;
            self.record.event(&Event::Finished(finished.clone()))?;
            Ok(finished.clone())
        };
        let own = self.learner.team.leads().then(&mut write);
        let finished = from_first(&self.learner.team.processes, own)?;
        self.progress.finished = Some(finished.clone());
        self.keep()?;
        self.record.flush()?;
        Ok(Outcome::Finished(finished))
    }

    /// The best model so far, where it is kept; the first process knows it.
    fn best_of_all(&self) -> Result<Option<Best>, TrainError> {
        let processes = &self.learner.team.processes;
        if processes.size() == 1 || !keeps_best(self.resolved.recipe.selection) {
            return Ok(self.progress.best.clone());
        }
        let step = from_first(
            processes,
            processes
                .rank()
                .eq(&0)
                .then(|| Ok::<_, TrainError>(self.progress.best.as_ref().map(|best| best.step))),
        )?;
        let own = self.progress.best.as_ref().map_or(&[][..], |best| &best.weights);
        let weights = processes.broadcast_bytes(0, own)?;
        Ok(step.map(|step| Best { step, weights }))
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
        let processes = &self.learner.team.processes;
        let verdict = judge(engine, processes, recipe, &self.material, (best.step, Model::Ema), Care::Final);
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
fn corrupt(step: u64, first: &Skipped) -> Note {
    Note {
        step,
        text: format!("sample {} is corrupt ({}), and another took its place", first.id, first.problem),
        hint: "repair the dataset, or see how many there are with `prepare`".to_owned(),
    }
}
