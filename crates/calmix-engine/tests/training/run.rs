//! A small training run: made-up images, a method, an engine.
#![allow(dead_code, reason = "not every test asks for everything")]

use calmix_core::matrix::Matrix;
use calmix_core::method::{Method, MethodState};
use calmix_core::observation::Observation;
use calmix_core::plan::{PlanError, StepPlan, plan_step};
use calmix_core::pseudo::PseudoLabels;
use calmix_core::rng::{Domain, Seed};
use calmix_core::samples::LocalState;
use calmix_core::schedule::LearningRate;
use calmix_engine::batch::{Batch, Labelled, Unlabelled};
use calmix_engine::device::Device;
use calmix_engine::engine::{Engine, Learnt, Settings};
use calmix_engine::error::EngineError;
use calmix_engine::images::{Normalisation, Size};
use calmix_engine::network::FirstBlock;
use calmix_engine::optimiser::Sgd;
use calmix_engine::precision::Precision;
use calmix_engine::step::{Asked, Passes};

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

/// An engine of the smallest network on images of `side` pixels with four classes, on the processor.
pub(crate) fn settings(side: usize) -> Settings {
    Settings {
        architecture: "wrn-10-1".parse().expect("a network"),
        first_block: FirstBlock::Google,
        classes: 4,
        size: Size { height: side, width: side },
        // Exact in f32: whoever normalises in whatever order comes to the same bits.
        normalisation: Normalisation {
            mean: [128.0 / 255.0, 112.0 / 255.0, 96.0 / 255.0],
            deviation: [64.0 / 255.0, 32.0 / 255.0, 128.0 / 255.0],
        },
        device: Device::Cpu,
        precision: Precision::F32,
        optimiser: Sgd::default(),
        ema_decay: 0.9,
        norm_momentum: None,
        clip: None,
        passes: Passes::Joint,
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
                pixels.extend((0..settings.size.bytes()).map(|_| (shade + stream.next_u32() % 128) as u8));
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
        }
    }

    pub(crate) fn batch(&self) -> Batch<'_> {
        Batch {
            step: self.step,
            labelled: Labelled { ids: &self.ids, labels: &self.labels, pixels: &self.x },
            unlabelled: Unlabelled { ids: &self.unlabelled_ids, weak: &self.weak, strong: &self.strong },
        }
    }
}

/// What happened in a step, all of it.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) views: Views,
    pub(crate) rate: f64,
    pub(crate) plan: StepPlan,
    pub(crate) again: Option<PseudoLabels>,
    /// Of the labelled rows, where the plan was made.
    pub(crate) logits: Vec<f32>,
    pub(crate) learnt: Learnt,
}

/// A run at some step.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) engine: Engine,
    pub(crate) method: Method,
    pub(crate) rows: Rows,
    pub(crate) memory: Memory,
}

/// What a run remembers besides its engine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Memory {
    pub(crate) step: u64,
    state: MethodState,
    samples: LocalState,
}

impl Run {
    pub(crate) fn new(settings: Settings, method: Method, rows: Rows) -> Self {
        let engine = Engine::new(settings, Seed(11)).expect("an engine");
        let ids: Vec<u64> = (0..LABELLED).collect();
        let state = method.initial_state(settings.classes, UNLABELLED);
        let samples = method.local_state(settings.classes, &ids, UNLABELLED as usize);
        Self { engine, method, rows, memory: Memory { step: 0, state, samples } }
    }

    /// One step, as the method plans it.
    pub(crate) fn step(&mut self) -> Result<Told, EngineError> {
        self.step_with(|_, _| {})
    }

    /// One step with a plan that is tampered with.
    pub(crate) fn step_with(
        &mut self,
        mut tamper: impl FnMut(Asked, &mut StepPlan),
    ) -> Result<Told, EngineError> {
        let views = Views::at(self.memory.step, self.rows, self.engine.settings());
        let rate = LearningRate::Cosine.at(self.memory.step, 100, RATE);
        let (mut first, mut again, mut logits) = (StepPlan::default(), None, Vec::new());
        let Self { engine, method, memory, .. } = self;
        let learnt = engine.step(method, &views.batch(), rate, |asked, seen| {
            let mut plan = memory.plan(method, asked, seen)?;
            tamper(asked, &mut plan);
            match asked {
                Asked::Plan => {
                    first = plan.clone();
                    logits = flat(seen.labelled.logits);
                }
                Asked::PseudoLabelsAgain => again = Some(plan.pseudo.clone()),
            }
            Ok(plan)
        })?;
        self.memory.step += 1;
        Ok(Told { views, rate, plan: first, again, logits, learnt })
    }

    pub(crate) fn steps(&mut self, count: usize) -> Vec<Told> {
        (0..count).map(|_| self.step().expect("a step")).collect()
    }
}

impl Memory {
    fn plan(&mut self, method: &Method, asked: Asked, seen: &Observation<'_>) -> Result<StepPlan, PlanError> {
        let Self { step, state, samples } = self;
        match asked {
            Asked::Plan => plan_step(method, seen, state, samples, Seed(3), *step),
            Asked::PseudoLabelsAgain => {
                let (x, u) = (&seen.labelled, &seen.unlabelled);
                let pseudo = method.base.pseudo_label(x.logits, u.ids, u.logits, &mut state.base, samples)?;
                Ok(StepPlan { pseudo, ..StepPlan::default() })
            }
        }
    }
}

fn flat(matrix: Matrix<'_>) -> Vec<f32> {
    matrix.iter().flatten().copied().collect()
}
