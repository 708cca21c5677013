//! The training loop, and one step of it, top-down.
//!
//! The loop writes the event of a step, then a checkpoint that records where the journal ended, then the predictions of an
//! evaluation, then its events: an evaluation takes long, and a run that has to stop abandons it. A run that resumes from
//! the checkpoint writes everything after it again, byte for byte, and starts with the evaluation that the checkpoint
//! lacks; so a kill between any two writes changes nothing in the end. The last step is saved before the last evaluation
//! too, and once more as the last thing that a run writes: a run that has that checkpoint is finished.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use calmix_core::labelled_samples::LabelledSamples;
use calmix_core::method::{BaseLoss, Method, MethodState};
use calmix_core::plan::{StepPlan, plan_step};
use calmix_core::rng::Seed;
use calmix_core::samples::Samples;
use calmix_core::schedule::RunStep;
use calmix_data::loader::{TrainBatch, Warn};
use calmix_engine::batch as engine_batch;
use calmix_engine::engine::Engine;
use calmix_engine::error::EngineError;
use calmix_engine::observe::Observed;
use calmix_engine::partition::Partition;
use calmix_engine::shard_plan::LocalPlan;
use calmix_run::checkpoint::{Checkpoints, Identity};
use calmix_run::events::EvalSet;
use calmix_run::run::Disk;

use super::Outcome;
use super::checkpoint_files::RunProgress;
use super::error::TrainError;
use super::evaluate::EvalMode;
use super::event_writer::EventWriter;
use super::exchange::{Gathered, gather, gather_again};
use super::frozen_features::HeadInput;
use super::layout::ParallelLayout;
use super::partners::local_plan;
use super::report::{StepResult, Timer};
use super::step_phase::{StepPhase, Watch};
use super::step_stats::{StepStats, tallies};
use super::sync::{BatchStatus, Heartbeat, StragglerDetector, check_divergence};
use super::train_data::TrainData;
use super::visits::ShardVisits;
use crate::recipe::{NonFinite, Resolved};

pub(super) struct TrainLoop<'a> {
    pub(super) resolved: Resolved,
    pub(super) data: TrainData,
    /// What is below the head, where the backbone is frozen.
    pub(super) head: Option<HeadInput>,
    pub(super) layout: ParallelLayout,
    pub(super) partition: Partition,
    pub(super) method: Method,
    pub(super) state: TrainState,
    pub(super) progress: RunProgress,
    pub(super) events: EventWriter<'a>,
    /// On rank 0, which commits them.
    pub(super) checkpoints: Option<Checkpoints>,
    /// Where the other ranks write their files of a checkpoint.
    pub(super) disk: Arc<dyn Disk>,
    pub(super) identity: Identity,
    /// Steps that were done.
    pub(super) step: u64,
    /// The step of the newest checkpoint.
    pub(super) saved: Option<u64>,
    pub(super) stop: &'a AtomicBool,
    /// Whether a process received a request to stop, as all know since the last step.
    pub(super) stop_heard: bool,
    /// How long the last step took, waiting for other processes not counted.
    pub(super) busy: Duration,
    pub(super) stragglers: StragglerDetector,
    /// Corrupt samples of each split that people were told of.
    pub(super) left_out: BTreeMap<EvalSet, u64>,
    pub(super) watch: Watch,
    pub(super) warn: Warn,
}

/// What a step changes and a checkpoint contains.
pub(super) struct TrainState {
    pub(super) engine: Engine,
    pub(super) method: MethodState,
    pub(super) labelled: LabelledSamples,
    pub(super) samples: Samples,
    /// Steps that were not finite and did not count.
    pub(super) skips: u32,
}

/// Every how many steps processes compare their weights.
const COMPARE_WEIGHTS: u64 = 100;

impl TrainLoop<'_> {
    /// Trains to the end, or until a request to stop.
    pub(super) fn run(mut self) -> Result<Outcome, TrainError> {
        let recipe = self.resolved.recipe.clone();
        let total = recipe.train.steps;
        let batches = self.data.batches(&recipe, &self.layout, self.step..total)?;
        let mut batches = batches.warning(Arc::clone(&self.warn));
        let mut timer = Timer::new(&self.layout, self.step, total);
        let mut evaluates = self.lacks_evaluation();
        while self.step < total {
            if std::mem::take(&mut evaluates) {
                match self.evaluate(EvalMode::FiguresOnly) {
                    Err(TrainError::Abandoned) => return self.stopped(),
                    evaluated => drop(evaluated?),
                }
            }
            if self.stop_requested() {
                return self.stopped();
            }
            let (start, waited) = (Instant::now(), self.layout.processes.waited());
            let batch = match self.next_batch(&mut batches) {
                Ok(batch) => batch,
                Err(error) => return self.end_without_batch(Some(error)),
            };
            let logs = self.is_due(batch.step + 1, recipe.log.every);
            let result = self.step(&batch, Heartbeat::default())?;
            if let StepResult::Lost = result {
                return self.end_without_batch(None);
            }
            self.step = batch.step + 1;
            self.report(result, logs)?;
            let waited = self.layout.processes.waited().saturating_sub(waited);
            self.busy = start.elapsed().saturating_sub(waited);
            if logs {
                self.events.pace(&timer.pace(self.step, &self.layout, batches.counters()))?;
            } else if let Some(pace) = timer.first_pace(self.step, &self.layout, batches.counters()) {
                self.events.first_pace(&pace);
            }
            evaluates = self.lacks_evaluation();
            // The last step has an end of its own.
            if self.step < total && (evaluates || self.step.is_multiple_of(recipe.checkpoint.every)) {
                self.try_save()?;
            }
        }
        drop(batches);
        self.finish()
    }

    /// Ends a run that has to stop: with its state saved.
    pub(super) fn stopped(mut self) -> Result<Outcome, TrainError> {
        self.save()?;
        self.events.flush()?;
        Ok(Outcome::Stopped { step: self.step })
    }

    /// Whether an evaluation is due after the last step and has not been made: also where a run resumes from a checkpoint
    /// that was made before it. The last step has an end of its own.
    fn lacks_evaluation(&self) -> bool {
        let recipe = &self.resolved.recipe;
        let is_due = self.step > 0 && self.step.is_multiple_of(recipe.evaluate.every);
        is_due
            && self.step < recipe.train.steps
            && !self.progress.history.iter().any(|seen| seen.step == self.step)
    }

    /// One step: observe, visit, gather, plan, learn, commit. `says` has what the heartbeat tells besides the usual.
    pub(super) fn step(&mut self, batch: &TrainBatch, says: Heartbeat) -> Result<StepResult, TrainError> {
        let (step, method, classes) = (batch.step, self.method, self.data.classes.len());
        let at = RunStep { step, steps: self.resolved.recipe.train.steps };
        let mixing = method.mix_weight(at, &self.state.method) > 0.0;
        self.watch.enter(StepPhase::Observe, step);
        let observed = self.state.engine.observe(&method, &lent(batch, &self.partition), mixing)?;
        let TrainState { method: state, samples, .. } = &mut self.state;
        let visits = ShardVisits::make(samples, &method, state, at, batch, &observed)?;

        self.watch.enter(StepPhase::Plan, step);
        let (heartbeat, status) = (self.heartbeat(step, says)?, BatchStatus::of(batch, observed.is_finite()));
        let known = gather(&self.layout, observed.observation()?, &visits, heartbeat, &status)?;
        self.read_heartbeats(&known.heartbeats)?;
        if known.heartbeats.iter().any(|beat| beat.lost) {
            self.state.samples.undo();
            return Ok(StepResult::Lost);
        }
        let status = known.status.clone();
        let not_finite = EngineError::NotFinite { step, what: "output of the network" };
        if status.not_finite {
            return self.undo(step, status, not_finite);
        }
        self.state.labelled.visit(&known.labelled_ids, &known.margins)?;
        let (plans, mut state) = self.plan(&known, at)?;
        let mut plan = local_plan(&self.layout, &plans, batch, classes)?;
        let truth = |id| self.data.judged_class(id);
        let tallies = tallies(&self.layout, &method, &visits, (&plans, &known.groups), classes, &truth);
        plan.shards.iter_mut().zip(tallies).for_each(|(shard, tally)| shard.tally = tally);
        drop(known);
        let mut observed = observed;
        let again = method.base_loss == BaseLoss::Twice && plans.iter().any(|plan| !plan.mixes.is_empty());
        if again && !self.label_again(&mut observed, &mut plan, &mut state)? {
            return self.undo(step, status, not_finite);
        }

        self.watch.enter(StepPhase::Learn, step);
        let optimiser = &self.resolved.recipe.optimiser;
        let rate = optimiser.schedule.at(at, optimiser.lr);
        let output = match self.state.engine.learn(&self.layout.processes, &method, observed, &plan, rate) {
            Err(error @ EngineError::NotFinite { .. }) => return self.undo(step, status, error),
            output => output?,
        };
        let stats = Box::new(StepStats::read(&output.tally)?);
        state.take_in(&method, step, &stats.feedback);
        self.state.method = state;
        self.state.labelled.commit();
        self.state.samples.commit();
        Ok(StepResult::Learnt { rate, output, stats, status })
    }

    /// The plan of each group that this process runs shards of, and the state of the method after them.
    fn plan(&self, known: &Gathered<'_>, at: RunStep) -> Result<(Vec<StepPlan>, MethodState), TrainError> {
        let seed = Seed(self.resolved.recipe.train.seed);
        let (mut plans, mut after) = (Vec::new(), self.state.method.clone());
        for (membership, rows) in self.layout.memberships().iter().zip(&known.groups) {
            // Groups start from the same state, and end in the same one: it depends on sums over all groups alone.
            after = self.state.method.clone();
            let aum = self.state.labelled.aum(&rows.labelled.ids)?;
            let known = rows.known(aum.as_deref(), &known.sums)?;
            let seed = seed.child(membership.group as u64);
            plans.push(plan_step(&self.method, &known, &mut after, seed, at)?);
        }
        Ok((plans, after))
    }

    /// The released code's second pass, with the mixtures in the batch: its pseudo-labels come from it. Returns whether
    /// all numbers were finite.
    fn label_again(
        &self,
        observed: &mut Observed,
        plan: &mut LocalPlan,
        state: &mut MethodState,
    ) -> Result<bool, TrainError> {
        self.state.engine.observe_again(&self.method, observed, plan)?;
        let (seen, base) = (observed.observation()?, &self.method.base);
        let Some(pseudo) = gather_again(&self.layout, &seen, base, &mut state.base)? else {
            return Ok(false);
        };
        for membership in self.layout.memberships() {
            for (shard, local) in membership.shards().zip(membership.local.clone()) {
                let [_, rows] = membership.rows(shard);
                if let Some(plan) = plan.shards.get_mut(local) {
                    plan.second = Some(pseudo.of_rows(rows));
                }
            }
        }
        Ok(true)
    }

    /// A step that was not finite does not count; the run ends with it, where the recipe says so.
    fn undo(&mut self, step: u64, status: BatchStatus, error: EngineError) -> Result<StepResult, TrainError> {
        let train = &self.resolved.recipe.train;
        self.state.labelled.undo();
        self.state.samples.undo();
        if train.non_finite == NonFinite::Stop {
            return Err(error.into());
        }
        self.state.skips += 1;
        let (skips, most) = (self.state.skips, train.non_finite_skips);
        if skips > most {
            return Err(TrainError::TooManySkips { step, problem: error.to_string(), skips });
        }
        Ok(StepResult::Undone {
            problem: format!("{error}; skipped, {skips} of at most {most} steps"),
            status,
        })
    }

    fn heartbeat(&self, step: u64, says: Heartbeat) -> Result<Heartbeat, TrainError> {
        let compares = self.layout.processes.size() > 1 && step.is_multiple_of(COMPARE_WEIGHTS);
        Ok(Heartbeat {
            step,
            stop: self.stop.load(Ordering::Relaxed),
            busy: self.busy,
            weights: if compares { self.state.engine.digest()? } else { 0 },
            ..says
        })
    }

    /// Reads the heartbeats of all processes: a request to stop, a divergence, a straggler.
    fn read_heartbeats(&mut self, heartbeats: &[Heartbeat]) -> Result<(), TrainError> {
        check_divergence(heartbeats)?;
        self.stop_heard |= heartbeats.iter().any(|beat| beat.stop);
        let straggler = self.stragglers.update(heartbeats);
        straggler.map_or(Ok(()), |note| self.events.aside(note))
    }

    /// Several processes stop at the step after the one in which all received the request.
    pub(super) fn stop_requested(&self) -> bool {
        let alone = self.layout.processes.size() == 1;
        if alone { self.stop.load(Ordering::Relaxed) } else { self.stop_heard }
    }

    fn is_due(&self, step: u64, every: u64) -> bool {
        step.is_multiple_of(every) || step == self.resolved.recipe.train.steps
    }
}

/// The batch as the engine borrows it.
fn lent<'a>(batch: &'a TrainBatch, partition: &'a Partition) -> engine_batch::Batch<'a> {
    engine_batch::Batch {
        step: batch.step,
        labelled: engine_batch::LabelledRows {
            ids: &batch.labelled.ids,
            labels: &batch.labelled.labels,
            pixels: &batch.labelled.pixels,
        },
        unlabelled: engine_batch::UnlabelledRows {
            ids: &batch.unlabelled.ids,
            weak: &batch.unlabelled.weak,
            strong: &batch.unlabelled.strong,
        },
        partition,
    }
}
