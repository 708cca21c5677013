//! The engine alone on one process that runs one shard or several: `KIND SHARDS`, WRN-28-2, 16 + 112 rows per shard.
//!
//! A repetition trains on eight shards: in eight steps of one, or in one step of eight. So times compare directly, and
//! memory shows whether the graphs of several shards live at the same time.

use anyhow::{Context, Result, bail};
use calmix_core::planner::Planner;
use calmix_core::preset::paper;
use calmix_core::pseudo::{Base, FixMatch};
use calmix_core::rng::{Domain, Seed};
use calmix_core::schedule::{RunStep, Start};
use calmix_core::sharding::{Partition, RowsPerShard, Sharding};
use calmix_dist::ProcessGroup;
use calmix_engine::batch::{Batch, LabelledRows, UnlabelledRows};
use calmix_engine::device::set_threads;
use calmix_engine::engine::Engine;
use calmix_engine::shard_plan::{Image, LocalPlan, Mixture};

use crate::step::settings;

const SHARDS: usize = 8;
const ROWS: [usize; 2] = [16, 112];
const CLASSES: usize = 10;
const THREADS: usize = 2;
const SEED: Seed = Seed(1);

/// One repetition: eight shards.
pub(crate) fn prepare(case: &[&str]) -> Result<impl FnMut() -> Result<f64> + use<>> {
    let &[kind, shards] = case else { bail!("the cases of shards are `KIND SHARDS`, not {case:?}") };
    let shards: usize = shards.parse().with_context(|| format!("`{shards}` is not a count"))?;
    set_threads(THREADS);
    let mut engine = Engine::new(settings(kind)?, SEED)?;
    let mut method = paper(Base::FixMatch(FixMatch { threshold: 0.2 }));
    method.mixup.start = Start::at(0);
    let [x, u] = ROWS.map(|rows| rows * shards);
    let ids: Vec<u64> = (0..x as u64).collect();
    let unlabelled_ids: Vec<u64> = (0..u as u64).map(|n| n + 10_000).collect();
    let labels: Vec<u32> = (0..x).map(|n| (n % CLASSES) as u32).collect();
    let mut stream = SEED.stream(Domain::Init, 0, 0);
    let mut pixels = |rows: usize| -> Vec<u8> {
        (0..rows * engine.settings().model.image_bytes()).map(|_| stream.next_u32() as u8).collect()
    };
    let (labelled, weak, strong) = (pixels(x), pixels(u), pixels(u));
    let rows = RowsPerShard { labelled: ROWS[0], unlabelled: ROWS[1] };
    let partition = Partition::equal(Sharding::new(shards as u32, 1), rows, shards);
    let mut plan: Option<LocalPlan> = None;
    Ok(move || {
        let batch = Batch {
            step: 0,
            labelled: LabelledRows { ids: &ids, labels: &labels, pixels: &labelled },
            unlabelled: UnlabelledRows { ids: &unlabelled_ids, weak: &weak, strong: &strong },
            partition: &partition,
        };
        let mut total = 0.0;
        for _ in 0..SHARDS / shards {
            let observed = engine.observe(&method, &batch, true)?;
            if plan.is_none() {
                // One plan of the first shard's rows, for all: only the passes are measured.
                let seen = observed.observation()?;
                let first = calmix_core::observation::Observation {
                    labelled: seen.labelled.range(0..ROWS[0]),
                    labels: &labels[..ROWS[0]],
                    unlabelled: seen.unlabelled.range(0..ROWS[1]),
                };
                let mut planner = Planner::new(method, CLASSES, &ids, ROWS[1], SEED);
                let slots: Vec<u64> = (0..ROWS[1] as u64).collect();
                let local =
                    LocalPlan::from(planner.plan(&first, &slots, RunStep { step: 0, steps: 1 })?.plan);
                plan = Some(copies(&local, shards));
            }
            let plan = plan.as_ref().context("no plan")?;
            total += engine.learn(&ProcessGroup::alone(), &method, observed, plan, 0.03)?.total;
        }
        Ok(total)
    })
}

/// The plan of one shard for each of several, on its own rows.
fn copies(one: &LocalPlan, shards: usize) -> LocalPlan {
    let moved = |image: Image, n: usize| match image {
        Image::Labelled(i) => Image::Labelled(i + n * ROWS[0]),
        Image::Weak(j) => Image::Weak(j + n * ROWS[1]),
        Image::Partner(n) => Image::Partner(n),
    };
    let copy = |n: usize| {
        let mut plan = one.shards[0].clone();
        plan.mixes =
            plan.mixes.iter().map(|mix| Mixture { a: moved(mix.a, n), b: moved(mix.b, n), ..*mix }).collect();
        plan
    };
    LocalPlan { shards: (0..shards).map(copy).collect(), partners: Vec::new() }
}
