//! A small training run: made-up images, a method, an engine.
#![allow(dead_code, reason = "not every test asks for everything")]

use calmix_core::matrix::Matrix;
use calmix_core::method::{BaseLoss, Method};
use calmix_core::micro_batching::Partition;
use calmix_core::plan::StepPlan;
use calmix_core::planner::Planner;
use calmix_core::pseudo::PseudoLabels;
use calmix_core::rng::{Domain, Seed};
use calmix_core::schedule::{LearningRate, RunStep};
use calmix_dist::ProcessGroup;
use calmix_engine::batch::{Batch, LabelledRows, UnlabelledRows};
use calmix_engine::engine::{Engine, Settings};
use calmix_engine::error::EngineError;
use calmix_engine::learn::StepOutput;
use calmix_engine::optimiser::Sgd;

use calmix_engine::micro_batch_plan::LocalPlan;
use calmix_recipe::device::Device;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::precision::Precision;

use calmix_recipe::step_kind::{StepKind, SumKind};

/// Samples that labelled and unlabelled batches are taken from: few, so that they come back.
const LABELLED: u64 = 12;
const UNLABELLED: u64 = 40;

/// The initial learning rate of all runs; it falls over a hundred steps.
const RATE: f64 = 0.03;

/// Rows of the two batches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) labelled: usize,
    pub(crate) unlabelled: usize,
}

/// An engine of the smallest network on images of `side` pixels with four classes, on the CPU.
pub(crate) fn settings(side: u32) -> Settings {
    Settings {
        model: ModelSpec {
            // Exact in f32: any order of normalisation gives the same bits.
            mean: [128.0 / 255.0, 112.0 / 255.0, 96.0 / 255.0],
            std: [64.0 / 255.0, 32.0 / 255.0, 128.0 / 255.0],
            ..ModelSpec::new("wrn-10-1".parse().expect("a network"), side)
        },
        classes: 4,
        device: Device::Cpu,
        precision: Precision::F32,
        optimiser: Sgd::default(),
        ema_decay: 0.9,
        norm_momentum: None,
        clip: None,
        step: StepKind::Joint,
        sum: SumKind::Tree,
    }
}

/// One step's samples: a function of the step alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Views {
    pub(crate) step: u64,
    pub(crate) ids: Vec<u64>,
    pub(crate) labels: Vec<u32>,
    pub(crate) x: Vec<u8>,
    pub(crate) unlabelled_ids: Vec<u64>,
    pub(crate) weak: Vec<u8>,
    pub(crate) strong: Vec<u8>,
    pub(crate) partition: Option<Partition>,
}

/// Which plan of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    First,
    /// Only its pseudo-labels are used.
    Second,
}

impl Views {
    pub(crate) fn at(step: u64, rows: Rows, settings: &Settings) -> Self {
        let ids = |count: usize, of: u64| (0..count as u64).map(move |n| (step * count as u64 + n) % of);
        let classes = settings.classes as u64;
        // A class is a shade with noise on it.
        let pixels = |ids: &[u64], domain: Domain| {
            let mut pixels = Vec::new();
            for &id in ids {
                let mut stream = Seed(5).stream(domain, step, id);
                let shade = (id % classes * 128 / classes) as u32;
                pixels.extend(
                    (0..settings.model.image_bytes()).map(|_| (shade + stream.next_u32() % 128) as u8),
                );
            }
            pixels
        };
        let labelled: Vec<u64> = ids(rows.labelled, LABELLED).collect();
        let unlabelled: Vec<u64> = ids(rows.unlabelled, UNLABELLED).collect();
        Self {
            step,
            labels: labelled.iter().map(|&id| (id % classes) as u32).collect(),
            x: pixels(&labelled, Domain::Weak),
            weak: pixels(&unlabelled, Domain::Weak),
            strong: pixels(&unlabelled, Domain::Strong),
            ids: labelled,
            unlabelled_ids: unlabelled,
            partition: Some(Partition::whole(rows.labelled, rows.unlabelled)),
        }
    }

    pub(crate) fn batch(&self) -> Batch<'_> {
        Batch {
            step: self.step,
            labelled: LabelledRows { ids: &self.ids, labels: &self.labels, pixels: &self.x },
            unlabelled: UnlabelledRows { ids: &self.unlabelled_ids, weak: &self.weak, strong: &self.strong },
            partition: self.partition.as_ref().expect("a partition"),
        }
    }
}

/// All results of a step.
#[derive(Debug, Clone)]
pub(crate) struct StepRecord {
    pub(crate) views: Views,
    pub(crate) rate: f64,
    pub(crate) plan: StepPlan,
    pub(crate) again: Option<PseudoLabels>,
    /// Of the labelled rows, where the plan was made.
    pub(crate) logits: Vec<f32>,
    pub(crate) output: StepOutput,
}

/// A run at some step.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) engine: Engine,
    pub(crate) rows: Rows,
    pub(crate) step: u64,
    pub(crate) planner: Planner,
}

impl Run {
    pub(crate) fn new(settings: Settings, method: Method, rows: Rows) -> Self {
        let engine = Engine::new(settings, Seed(11)).expect("an engine");
        let ids: Vec<u64> = (0..LABELLED).collect();
        let planner = Planner::new(method, settings.classes, &ids, UNLABELLED as usize, Seed(3));
        Self { engine, rows, step: 0, planner }
    }

    /// One step, as the method plans it.
    pub(crate) fn step(&mut self) -> Result<StepRecord, EngineError> {
        self.step_with(|_, _| {})
    }

    /// One step with a plan that is tampered with.
    pub(crate) fn step_with(
        &mut self,
        tamper: impl FnMut(Pass, &mut StepPlan),
    ) -> Result<StepRecord, EngineError> {
        let told = self.try_step(tamper);
        match &told {
            Ok(_) => self.step += 1,
            Err(_) => self.planner.undo(),
        }
        told
    }

    fn try_step(&mut self, mut tamper: impl FnMut(Pass, &mut StepPlan)) -> Result<StepRecord, EngineError> {
        let Self { engine, planner, step, rows } = self;
        let method = planner.method;
        let views = Views::at(*step, *rows, engine.settings());
        let at = RunStep { step: *step, steps: 100 };
        let rate = LearningRate::Cosine.at(at, RATE);
        let mixing = method.mix_weight(at, &planner.state) > 0.0;
        let mut observed = engine.observe(&method, &views.batch(), mixing)?;
        let logits = flat(observed.observation()?.labelled.logits);
        let mut planned = planner.plan(&observed.observation()?, &views.unlabelled_ids, at).expect("a plan");
        tamper(Pass::First, &mut planned.plan);
        let plan = planned.plan.clone();
        let mut local = LocalPlan::from(plan.clone());
        let mut again = None;
        if method.base_loss == BaseLoss::Twice && !plan.mixes.is_empty() {
            engine.observe_again(&method, &mut observed, &local)?;
            let pseudo = planner.label_again(&mut planned, &observed.observation()?).expect("labels");
            let mut second = StepPlan { pseudo, ..StepPlan::default() };
            tamper(Pass::Second, &mut second);
            again = Some(second.pseudo);
            local.micro_batches[0].second.clone_from(&again);
        }
        let output = engine.learn(&ProcessGroup::alone(), &method, observed, &local, rate)?;
        planner.commit(planned);
        Ok(StepRecord { views, rate, plan, again, logits, output })
    }

    pub(crate) fn steps(&mut self, count: usize) -> Vec<StepRecord> {
        (0..count).map(|_| self.step().expect("a step")).collect()
    }
}

/// One step with an existing plan.
pub(crate) fn learn(
    engine: &mut Engine,
    method: &Method,
    batch: &Batch<'_>,
    plan: &LocalPlan,
    rate: f64,
) -> Result<StepOutput, EngineError> {
    let observed = engine.observe(
        method,
        batch,
        plan.micro_batches.iter().any(|micro_batch| !micro_batch.mixes.is_empty()),
    )?;
    engine.learn(&ProcessGroup::alone(), method, observed, plan, rate)
}

fn flat(matrix: Matrix<'_>) -> Vec<f32> {
    matrix.iter().flatten().copied().collect()
}
