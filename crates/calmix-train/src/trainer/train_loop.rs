//! A run in the hands of this process: the loop, and one step of it, top-down.
//!
//! After a step its event is written, then what an evaluation said, then its events, then a checkpoint that knows
//! where the journal ended. Whatever is written after a checkpoint is written again, byte for byte, by a run that
//! continues from it; so a kill between any two writes changes nothing in the end. The checkpoint of the last step
//! is the very last thing that a run writes: where it is, the run is finished.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use calmix_core::labelled_samples::LabelledSamples;
use calmix_core::method::{BaseLoss, Method, MethodState};
use calmix_core::plan::{StepPlan, plan_step};
use calmix_core::rng::Seed;
use calmix_core::samples::Samples;
use calmix_core::schedule::RunStep;
use calmix_data::loader::TrainBatch;
use calmix_engine::batch as engine_batch;
use calmix_engine::engine::Engine;
use calmix_engine::error::EngineError;
use calmix_engine::observe::Observed;
use calmix_engine::partition::Partition;
use calmix_engine::shard_plan::LocalPlan;

use super::Outcome;
use super::checkpoint_files::RunProgress;
use super::error::TrainError;
use super::evaluate::EvalMode;
use super::event_writer::EventWriter;
use super::exchange::{Gathered, gather, gather_again};
use super::layout::ParallelLayout;
use super::partners::local_plan;
use super::report::{StepResult, Timer};
use super::step_phase::{StepPhase, Watch};
use super::step_stats::{StepStats, TrueClass, tallies};
use super::sync::{BatchStatus, Heartbeat, StragglerDetector, check_divergence};
use super::train_data::TrainData;
use super::visits::ShardVisits;
use crate::recipe::{NonFinite, Resolved};
use calmix_run::checkpoint::{Checkpoints, Identity};
use calmix_run::run::Disk;

pub(super) struct TrainLoop<'a> {
    pub(super) resolved: Resolved,
    pub(super) data: TrainData,
    pub(super) layout: ParallelLayout,
    pub(super) partition: Partition,
    pub(super) method: Method,
    pub(super) state: TrainState,
    pub(super) progress: RunProgress,
    pub(super) events: EventWriter<'a>,
    /// With the process that writes.
    pub(super) checkpoints: Option<Checkpoints>,
    /// The disk of the others.
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
    pub(super) watch: Watch,
}

/// What a step changes, and a checkpoint keeps.
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
        let mut batches = self.data.batches(&recipe, &self.layout, self.step..total)?;
        let mut timer = Timer::new(&self.layout, self.step, total);
        while self.step < total {
            if self.stop_requested() {
                self.save()?;
                self.events.flush()?;
                return Ok(Outcome::Stopped { step: self.step });
            }
            let (start, waited) = (Instant::now(), self.layout.processes.waited());
            let missing = || TrainError::Unsupported(format!("there is no batch for step {}", self.step));
            let batch = batches.next().ok_or_else(missing)??;
            let logs = self.is_due(batch.step + 1, recipe.log.every);
            let result = self.step(&batch, logs)?;
            self.step = batch.step + 1;
            self.report(result, logs)?;
            let waited = self.layout.processes.waited().saturating_sub(waited);
            self.busy = start.elapsed().saturating_sub(waited);
            if logs {
                self.events.pace(&timer.pace(self.step, &self.layout, batches.counters()))?;
            }
            // The last step has an end of its own.
            if self.step < total && self.step.is_multiple_of(recipe.evaluate.every) {
                self.evaluate(EvalMode::Quick)?;
            }
            if self.step < total && self.step.is_multiple_of(recipe.checkpoint.every) {
                self.try_save()?;
            }
        }
        drop(batches);
        self.finish()
    }

    /// One step: observe, visit, gather, plan, learn, commit.
    fn step(&mut self, batch: &TrainBatch, logs: bool) -> Result<StepResult, TrainError> {
        let (step, method, classes) = (batch.step, self.method, self.data.classes.len());
        let at = RunStep { step, steps: self.resolved.recipe.train.steps };
        let mixing = method.mix_weight(at, &self.state.method) > 0.0;
        self.watch.tell(StepPhase::Observe, step);
        let observed = self.state.engine.observe(&method, &lent(batch, &self.partition), mixing)?;
        let TrainState { method: state, samples, .. } = &mut self.state;
        let visits = ShardVisits::make(samples, &method, state, at, batch, &observed)?;

        self.watch.tell(StepPhase::Plan, step);
        let (heartbeat, status) = (self.heartbeat(step)?, BatchStatus::of(batch, observed.is_finite()));
        let known = gather(&self.layout, observed.observation()?, &visits, heartbeat, &status)?;
        self.hear(&known.heartbeats)?;
        let status = known.status.clone();
        let not_finite = EngineError::NotFinite { step, what: "output of the network" };
        if status.not_finite {
            return self.undo(step, status, not_finite);
        }
        self.state.labelled.visit(&known.labelled_ids, &known.margins)?;
        let (plans, mut state) = self.plan(&known, at)?;
        let mut plan = local_plan(&self.layout, &plans, batch, classes)?;
        let pictures = &self.data.pictures;
        let truth = |id| pictures.label(id).ok().flatten();
        let truth: Option<TrueClass<'_>> = if logs { Some(&truth) } else { None };
        let tallies = tallies(&self.layout, &method, &visits, (&plans, &known.groups), classes, truth);
        plan.shards.iter_mut().zip(tallies).for_each(|(shard, tally)| shard.tally = tally);
        drop(known);
        let mut observed = observed;
        let again = method.base_loss == BaseLoss::Twice && plans.iter().any(|plan| !plan.mixes.is_empty());
        if again && !self.label_again(&mut observed, &mut plan, &mut state)? {
            return self.undo(step, status, not_finite);
        }

        self.watch.tell(StepPhase::Learn, step);
        let optimiser = &self.resolved.recipe.optimiser;
        let rate = optimiser.schedule.at(at, optimiser.lr);
        let output = match self.state.engine.learn(&self.layout.processes, &method, observed, &plan, rate) {
            Err(error @ EngineError::NotFinite { .. }) => return self.undo(step, status, error),
            output => output?,
        };
        let stats = StepStats::read(&output.tally)?;
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

    /// The released code's second pass, with the mixtures in the batch: its pseudo-labels are decided on it. Tells whether
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
        Ok(StepResult::Undone { problem: format!("{error}; skipped, {skips} of {most} that may be"), status })
    }

    fn heartbeat(&self, step: u64) -> Result<Heartbeat, TrainError> {
        let compares = self.layout.processes.size() > 1 && step.is_multiple_of(COMPARE_WEIGHTS);
        Ok(Heartbeat {
            step,
            stop: self.stop.load(Ordering::Relaxed),
            busy: self.busy,
            weights: if compares { self.state.engine.digest()? } else { 0 },
        })
    }

    /// Reads the heartbeats of all processes: a request to stop, a divergence, a straggler.
    fn hear(&mut self, heartbeats: &[Heartbeat]) -> Result<(), TrainError> {
        check_divergence(heartbeats)?;
        self.stop_heard |= heartbeats.iter().any(|beat| beat.stop);
        let straggler = self.stragglers.hear(heartbeats);
        straggler.map_or(Ok(()), |note| self.events.aside(note))
    }

    /// Several processes stop where all have heard of it.
    fn stop_requested(&self) -> bool {
        let alone = self.layout.processes.size() == 1;
        if alone { self.stop.load(Ordering::Relaxed) } else { self.stop_heard }
    }

    fn is_due(&self, step: u64, every: u64) -> bool {
        step.is_multiple_of(every) || step == self.resolved.recipe.train.steps
    }
}

/// A batch as the engine takes it.
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
