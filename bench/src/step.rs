//! Training steps of SoftMatch with CalibrateMix on CIFAR-10: `whole|bare concat|joint|lean FOLDER`.
//!
//! - `whole` is complete training: batches from the loader, with USB's views, and the plan of every step.
//! - `bare` is the same engine on one batch in memory and one finished plan: the passes, the optimiser and the EMA, without
//!   loader and plan. It still copies the batch to libtorch, normalises it and fetches the observation: together less than a
//!   hundredth of a step.

mod cifar;

use std::path::Path;

use anyhow::{Context, Result, bail};
use calmix_core::micro_batching::Partition;
use calmix_core::planner::Planner;
use calmix_core::preset::paper;
use calmix_core::pseudo::{Base, SoftMatch};
use calmix_core::rng::Seed;
use calmix_core::schedule::{RunStep, Start};
use calmix_data::loader::TrainBatch;
use calmix_dist::ProcessGroup;
use calmix_engine::batch::{self, LabelledRows, UnlabelledRows};
use calmix_engine::device::set_threads;
use calmix_engine::engine::{Engine, Settings};
use calmix_engine::micro_batch_plan::LocalPlan;
use calmix_engine::observe::Observed;
use calmix_engine::optimiser::Sgd;
use calmix_recipe::device::Device;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::precision::Precision;
use calmix_recipe::step_kind::{StepKind, SumKind};

use cifar::Cifar;

/// The number of steps per repetition, as in bench/peers/step.py.
const STEPS: u64 = 4;
/// B and μ·B, with μ = 7.
const ROWS: [u32; 2] = [16, 112];
const CLASSES: usize = 10;
/// The number of libtorch's threads.
const THREADS: usize = 2;
const LEARNING_RATE: f64 = 0.03;
const SEED: Seed = Seed(1);

/// Prepares the case. A repetition takes some steps and returns the sum of their losses.
///
/// With `whole`, a repetition starts its own loader and uses all of its batches. So no batch is made while another side is
/// measured, but no computation overlaps with the first batch.
pub(crate) fn prepare(case: &[&str]) -> Result<Box<dyn FnMut() -> Result<f64>>> {
    let &[what @ ("whole" | "bare"), kind @ ("concat" | "joint" | "lean"), folder] = case else {
        bail!("the cases of step are `whole|bare concat|joint|lean FOLDER`, not {case:?}");
    };
    set_threads(THREADS);
    let mut engine = Engine::new(settings(kind)?, SEED)?;
    let cifar = Cifar::open(Path::new(folder), SEED, ROWS)?;
    let mut method = paper(Base::SoftMatch(SoftMatch::default()));
    method.mixup.start = Start::at(0);
    let mut planner = Planner::new(method, CLASSES, &cifar.labelled_ids, cifar.samples as usize, SEED);
    let partition = Partition::whole(ROWS[0] as usize, ROWS[1] as usize);
    let processes = ProcessGroup::alone();

    if what == "whole" {
        let mut steps = 0..STEPS;
        return Ok(Box::new(move || {
            let mut total = 0.0;
            for batch in cifar.loader(SEED, steps.clone())? {
                let batch = batch?;
                let observed = engine.observe(&method, &as_engine_batch(&batch, &partition), true)?;
                let plan = planned(&mut planner, &observed, &batch)?;
                total += engine.learn(&processes, &method, observed, &plan, LEARNING_RATE)?.total;
            }
            steps = steps.end..steps.end + STEPS;
            Ok(total)
        }));
    }

    let batch = cifar.loader(SEED, 0..1)?.next().context("the loader has no batch")??.clone();
    let mut reused_plan: Option<LocalPlan> = None;
    Ok(Box::new(move || {
        let mut total = 0.0;
        for _ in 0..STEPS {
            let observed = engine.observe(&method, &as_engine_batch(&batch, &partition), true)?;
            // The first step belongs to the warm-up repetition, which is not counted on any side.
            if reused_plan.is_none() {
                reused_plan = Some(planned(&mut planner, &observed, &batch)?);
            }
            let plan = reused_plan.as_ref().context("no plan")?;
            total += engine.learn(&processes, &method, observed, plan, LEARNING_RATE)?.total;
        }
        Ok(total)
    }))
}

fn planned(planner: &mut Planner, observed: &Observed, batch: &TrainBatch) -> Result<LocalPlan> {
    let step = RunStep { step: batch.step, steps: STEPS };
    let planned = planner.plan(&observed.observation()?, &batch.unlabelled.slots, step)?;
    Ok(planner.commit(planned).into())
}

pub(crate) fn settings(kind: &str) -> Result<Settings> {
    let step = match kind {
        "concat" => StepKind::Concat,
        "joint" => StepKind::Joint,
        _ => StepKind::Lean,
    };
    Ok(Settings {
        model: ModelSpec {
            // The statistics of CIFAR-10.
            mean: [0.4914, 0.4822, 0.4465],
            std: [0.2471, 0.2435, 0.2616],
            ..ModelSpec::new("wrn-28-2".parse()?, 32)
        },
        classes: CLASSES,
        device: Device::Cpu,
        precision: Precision::Bf16,
        optimiser: Sgd::default(),
        ema_decay: 0.999,
        norm_momentum: None,
        clip: None,
        step,
        sum: SumKind::Tree,
    })
}

fn as_engine_batch<'a>(batch: &'a TrainBatch, partition: &'a Partition) -> batch::Batch<'a> {
    let (x, u) = (&batch.labelled, &batch.unlabelled);
    batch::Batch {
        step: batch.step,
        labelled: LabelledRows { ids: &x.ids, labels: &x.labels, pixels: &x.pixels },
        unlabelled: UnlabelledRows { ids: &u.ids, weak: &u.weak, strong: &u.strong },
        partition,
    }
}
