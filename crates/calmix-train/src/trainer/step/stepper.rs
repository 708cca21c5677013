//! One step of training, top-down: the network's outputs for a batch, their exchange, the plan, the update.
//!
//! A step does not depend on the run around it: its files, evaluations and sinks.

use std::sync::atomic::AtomicBool;

use calmix_core::method::{BaseLoss, Method, MethodState};
use calmix_core::micro_batching::Partition;
use calmix_core::plan::{StepPlan, plan_step};
use calmix_core::rng::Seed;
use calmix_core::samples::LabelledSamples;
use calmix_core::samples::Samples;
use calmix_core::schedule::RunStep;
use calmix_data::loader::{TrainBatch, Warn};

use calmix_engine::batch as engine_batch;
use calmix_engine::engine::{Engine, Settings};
use calmix_engine::error::EngineError;
use calmix_engine::learn::StepOutput;
use calmix_engine::micro_batch_plan::LocalPlan;
use calmix_engine::observe::Observed;
use calmix_lifecycle::evaluation::ignore_progress;
use calmix_recipe::{NonFinite, Recipe};

use super::exchange::{Gathered, gather, gather_again};
use super::partners::local_plan;
use super::step_stats::{StepStats, tallies};
use super::visits::BatchVisits;
use crate::trainer::data::TrainData;
use crate::trainer::error::TrainError;
use crate::trainer::ranks::eval_stop::EvalStop;
use crate::trainer::ranks::layout::ParallelLayout;
use crate::trainer::ranks::sync::{BatchStatus, Heartbeat, check_divergence};
use crate::trainer::step::{StepPhase, Watch};

/// The training steps of a run: a network, its data, and the processes that share the work.
pub(crate) struct Stepper {
    pub(crate) recipe: Recipe,
    pub(crate) data: TrainData,
    pub(crate) layout: ParallelLayout,
    pub(crate) partition: Partition,
    pub(crate) method: Method,
    pub(crate) state: TrainState,
    pub(crate) watch: Watch,
}

/// The state that steps change and checkpoints contain.
pub(crate) struct TrainState {
    pub(crate) engine: Engine,
    pub(crate) method: MethodState,
    pub(crate) labelled: LabelledSamples,
    pub(crate) samples: Samples,
    /// The number of steps that were skipped because they were not finite.
    pub(crate) skips: u32,
}

/// The result of a step, and the heartbeats received from all ranks.
pub(crate) struct StepReport {
    pub(crate) heartbeats: Vec<Heartbeat>,
    pub(crate) result: StepResult,
}

pub(crate) enum StepResult {
    Trained {
        rate: f64,
        output: StepOutput,
        stats: Box<StepStats>,
        status: BatchStatus,
    },
    /// A number was not finite.
    Skipped {
        problem: String,
        status: BatchStatus,
    },
    /// A process has no batch for this step, so it was not taken.
    NoBatch,
}

/// The number of steps after which processes compare their weights.
const WEIGHT_CHECK_INTERVAL: u64 = 100;

impl TrainState {
    /// Creates the state before the first step.
    fn initial(
        recipe: &Recipe,
        settings: Settings,
        data: &TrainData,
        layout: &ParallelLayout,
    ) -> Result<Self, TrainError> {
        let (method, classes) = (recipe.method, data.samples.classes.len());
        Ok(Self {
            engine: Engine::new(settings, Seed(recipe.train.seed))?,
            method: method.initial_state(classes, data.samples.unlabelled().len()),
            labelled: LabelledSamples::new(&method, data.samples.labelled()),
            samples: Samples::try_new(&method, classes, &data.samples_per_micro_batch(recipe, layout))?,
            skips: 0,
        })
    }
}

impl Stepper {
    /// Creates a stepper before its first step.
    pub(crate) fn new(
        recipe: Recipe,
        settings: Settings,
        data: TrainData,
        layout: ParallelLayout,
        watch: Watch,
    ) -> Result<Self, TrainError> {
        let state = TrainState::initial(&recipe, settings, &data, &layout)?;
        let (partition, method) = (layout.partition(), recipe.method);
        Ok(Self { recipe, data, layout, partition, method, state, watch })
    }

    /// Takes one step: observe, visit, gather, plan, learn, commit. Adds the step and the checksum of the weights to the
    /// `heartbeat`.
    pub(crate) fn step(
        &mut self,
        batch: &TrainBatch,
        heartbeat: Heartbeat,
    ) -> Result<StepReport, TrainError> {
        let (step, method, classes) = (batch.step, self.method, self.data.samples.classes.len());
        let at = RunStep { step, steps: self.recipe.train.steps };
        let mixing = method.mix_weight(at, &self.state.method) > 0.0;
        self.watch.enter(StepPhase::Observe, step);
        let mut observed =
            self.state.engine.observe(&method, &as_engine_batch(batch, &self.partition), mixing)?;
        let TrainState { method: state, samples, .. } = &mut self.state;
        let visits = BatchVisits::make(samples, &method, state, at, batch, &observed)?;

        self.watch.enter(StepPhase::Plan, step);
        let heartbeat = self.heartbeat(step, heartbeat)?;
        let status = BatchStatus::of(batch, observed.is_finite());
        let gathered = gather(&self.layout, observed.observation()?, &visits, heartbeat, &status)?;
        check_divergence(&gathered.heartbeats)?;
        let heartbeats = gathered.heartbeats.clone();
        let report = |result| Ok(StepReport { heartbeats, result });
        // All processes see the same heartbeats, so all of them undo the step.
        if gathered.heartbeats.iter().any(|beat| beat.no_batch) {
            self.state.samples.undo();
            return report(StepResult::NoBatch);
        }
        let status = gathered.status.clone();
        let not_finite = EngineError::NotFinite { step, what: "output of the network" };
        if status.not_finite {
            return report(self.undo(step, status, not_finite)?);
        }
        // Every process stores AUM of all labelled samples, so it needs the margins of all groups.
        self.state.labelled.visit(&gathered.labelled_ids, &gathered.margins)?;
        let (plans, mut state) = self.plan(&gathered, at)?;
        let mut plan = local_plan(&self.layout, &plans, batch, classes)?;
        let truth = |id| self.data.samples.evaluated_class(id);
        let tallies = tallies(&self.layout, &method, &visits, (&plans, &gathered.groups), classes, &truth)?;
        plan.micro_batches.iter_mut().zip(tallies).for_each(|(plan, tally)| plan.tally = tally);
        // It borrows from `observed`, which the second pass changes.
        drop(gathered);
        let again = method.base_loss == BaseLoss::Twice && plans.iter().any(|plan| !plan.mixes.is_empty());
        if again && !self.label_again(&mut observed, &mut plan, &mut state)? {
            return report(self.undo(step, status, not_finite)?);
        }

        self.watch.enter(StepPhase::Learn, step);
        let optimiser = &self.recipe.optimiser;
        let rate = optimiser.schedule.at(at, optimiser.lr);
        let output = match self.state.engine.learn(&self.layout.processes, &method, observed, &plan, rate) {
            Err(error @ EngineError::NotFinite { .. }) => return report(self.undo(step, status, error)?),
            output => output?,
        };
        let stats = Box::new(StepStats::read(&output.tally)?);
        state.update(&method, step, &stats.feedback);
        self.state.method = state;
        self.state.labelled.commit();
        self.state.samples.commit();
        report(StepResult::Trained { rate, output, stats, status })
    }

    /// Plans each group of which this process runs micro-batches; also returns the state of the method after the step.
    fn plan(&self, gathered: &Gathered<'_>, at: RunStep) -> Result<(Vec<StepPlan>, MethodState), TrainError> {
        let seed = Seed(self.recipe.train.seed);
        let (mut plans, mut after) = (Vec::new(), self.state.method.clone());
        for (membership, rows) in self.layout.memberships().iter().zip(&gathered.groups) {
            // All groups start from the same state and end in the same one, because it depends only on sums over all groups.
            after = self.state.method.clone();
            let aum = self.state.labelled.aum(&rows.labelled.ids)?;
            let known = rows.known(aum.as_deref(), &gathered.sums)?;
            let seed = seed.child(membership.group as u64);
            plans.push(plan_step(&self.method, &known, &mut after, seed, at)?);
        }
        Ok((plans, after))
    }

    /// Runs the released code's second pass, with the mixtures in the batch, which gives new pseudo-labels. Returns whether all
    /// numbers were finite.
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
            for (micro_batch, local) in membership.micro_batches().zip(membership.local.clone()) {
                let rows = membership.rows(micro_batch).unlabelled;
                if let Some(plan) = plan.micro_batches.get_mut(local) {
                    plan.second = Some(pseudo.of_rows(rows));
                }
            }
        }
        Ok(true)
    }

    /// Skips a step that was not finite, or ends the run, as the recipe sets.
    fn undo(&mut self, step: u64, status: BatchStatus, error: EngineError) -> Result<StepResult, TrainError> {
        let train = &self.recipe.train;
        self.state.labelled.undo();
        self.state.samples.undo();
        if train.non_finite == NonFinite::Stop {
            return Err(error.into());
        }
        self.state.skips += 1;
        let skips = self.state.skips;
        let max_skips = train.non_finite_skips;
        if skips > max_skips {
            return Err(TrainError::TooManySkips { step, problem: error.to_string(), skips });
        }
        Ok(StepResult::Skipped {
            problem: format!("{error}; step skipped ({skips} of at most {max_skips})"),
            status,
        })
    }

    /// Returns the stop signal of an evaluation after `step` steps.
    pub(crate) fn eval_stop<'a>(
        &'a self,
        step: u64,
        requested: &'a AtomicBool,
        warn: &'a Warn,
    ) -> EvalStop<'a> {
        let processes = &self.layout.processes;
        EvalStop { requested, processes, watch: &self.watch, warn, work: &ignore_progress, step }
    }

    /// Completes the heartbeat of this process.
    fn heartbeat(&self, step: u64, heartbeat: Heartbeat) -> Result<Heartbeat, TrainError> {
        let compares = self.layout.processes.size() > 1 && step.is_multiple_of(WEIGHT_CHECK_INTERVAL);
        let weights = if compares { self.state.engine.digest()? } else { 0 };
        Ok(Heartbeat { step, weights, ..heartbeat })
    }
}

fn as_engine_batch<'a>(batch: &'a TrainBatch, partition: &'a Partition) -> engine_batch::Batch<'a> {
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
