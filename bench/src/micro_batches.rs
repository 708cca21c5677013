//! The engine alone on one process that runs one micro-batch or several: `KIND MICRO_BATCHES`, WRN-28-2, 16 + 112 rows per
//! micro-batch.
//!
//! A repetition trains on eight micro-batches, in eight steps of one or in one step of eight. So times can be compared directly,
//! and the memory shows whether the graphs of several micro-batches exist at the same time.

use anyhow::{Context, Result, bail};
use calmix_core::micro_batching::{MicroBatching, Partition, RowsPerMicroBatch};
use calmix_core::planner::Planner;
use calmix_core::preset::paper;
use calmix_core::pseudo::{Base, FixMatch};
use calmix_core::rng::{Domain, Seed};
use calmix_core::schedule::{RunStep, Start};
use calmix_dist::ProcessGroup;
use calmix_engine::batch::{Batch, LabelledRows, UnlabelledRows};
use calmix_engine::device::set_threads;
use calmix_engine::engine::Engine;
use calmix_engine::micro_batch_plan::{Image, LocalPlan, Mixture};

use crate::step::settings;

const MICRO_BATCHES: usize = 8;
const ROWS: [usize; 2] = [16, 112];
const CLASSES: usize = 10;
const THREADS: usize = 2;
const SEED: Seed = Seed(1);

/// Prepares the case. A repetition trains on eight micro-batches.
pub(crate) fn prepare(case: &[&str]) -> Result<impl FnMut() -> Result<f64> + use<>> {
    let &[kind, micro_batches] = case else {
        bail!("the cases of micro-batches are `KIND MICRO_BATCHES`, not {case:?}")
    };
    let micro_batches: usize =
        micro_batches.parse().with_context(|| format!("`{micro_batches}` is not a count"))?;
    set_threads(THREADS);
    let mut engine = Engine::new(settings(kind)?, SEED)?;
    let mut method = paper(Base::FixMatch(FixMatch { threshold: 0.2 }));
    method.mixup.start = Start::at(0);
    let [x, u] = ROWS.map(|rows| rows * micro_batches);
    let ids: Vec<u64> = (0..x as u64).collect();
    let unlabelled_ids: Vec<u64> = (0..u as u64).map(|n| n + 10_000).collect();
    let labels: Vec<u32> = (0..x).map(|n| (n % CLASSES) as u32).collect();
    let mut stream = SEED.stream(Domain::Init, 0, 0);
    let mut pixels = |rows: usize| -> Vec<u8> {
        (0..rows * engine.settings().model.image_bytes()).map(|_| stream.next_u32() as u8).collect()
    };
    let (labelled, weak, strong) = (pixels(x), pixels(u), pixels(u));
    let rows = RowsPerMicroBatch { labelled: ROWS[0], unlabelled: ROWS[1] };
    let partition = Partition::equal(MicroBatching::new(micro_batches as u32, 1), rows, micro_batches);
    let mut plan: Option<LocalPlan> = None;
    Ok(move || {
        let batch = Batch {
            step: 0,
            labelled: LabelledRows { ids: &ids, labels: &labels, pixels: &labelled },
            unlabelled: UnlabelledRows { ids: &unlabelled_ids, weak: &weak, strong: &strong },
            partition: &partition,
        };
        let mut total = 0.0;
        for _ in 0..MICRO_BATCHES / micro_batches {
            let observed = engine.observe(&method, &batch, true)?;
            if plan.is_none() {
                // Use one plan, of the first micro-batch's rows, for all micro-batches: only the passes are measured.
                let observation = observed.observation()?;
                let first = calmix_core::observation::Observation {
                    labelled: observation.labelled.range(0..ROWS[0]),
                    labels: &labels[..ROWS[0]],
                    unlabelled: observation.unlabelled.range(0..ROWS[1]),
                };
                let mut planner = Planner::new(method, CLASSES, &ids, ROWS[1], SEED);
                let slots: Vec<u64> = (0..ROWS[1] as u64).collect();
                let local =
                    LocalPlan::from(planner.plan(&first, &slots, RunStep { step: 0, steps: 1 })?.plan);
                plan = Some(copies(&local, micro_batches));
            }
            let plan = plan.as_ref().context("no plan")?;
            total += engine.learn(&ProcessGroup::alone(), &method, observed, plan, 0.03)?.total;
        }
        Ok(total)
    })
}

/// Copies the plan of one micro-batch for several, each on its own rows.
fn copies(one: &LocalPlan, micro_batches: usize) -> LocalPlan {
    let moved = |image: Image, n: usize| match image {
        Image::Labelled(i) => Image::Labelled(i + n * ROWS[0]),
        Image::Weak(j) => Image::Weak(j + n * ROWS[1]),
        Image::Partner(n) => Image::Partner(n),
    };
    let copy = |n: usize| {
        let mut plan = one.micro_batches[0].clone();
        plan.mixes =
            plan.mixes.iter().map(|mix| Mixture { a: moved(mix.a, n), b: moved(mix.b, n), ..*mix }).collect();
        plan
    };
    LocalPlan { micro_batches: (0..micro_batches).map(copy).collect(), partners: Vec::new() }
}
