//! Plans for the paper's batch: `BASE CLASSES WIDTH`.

use anyhow::{Context, Result, bail};
use calmix_core::matrix::Matrix;
use calmix_core::observation::{Observation, Rows};
use calmix_core::plan::StepPlan;
use calmix_core::planner::Planner;
use calmix_core::preset::paper;
use calmix_core::pseudo::{Base, FixMatch, FlexMatch, SoftMatch};
use calmix_core::rng::{Domain, Seed, Stream};
use calmix_core::schedule::{RunStep, Start};

/// The number of steps per repetition.
const STEPS: usize = 20;
const LABELLED: usize = 64;
const UNLABELLED: usize = 448;
/// The number of samples with a state, labelled ones first.
const SAMPLES: u64 = 50_000;
const LABELLED_SAMPLES: u64 = 400;

/// Prepares the case. A repetition plans some steps of CalibrateMix as the paper defines it, with other samples every time.
pub(crate) fn prepare(case: &[&str]) -> Result<impl FnMut() -> Result<Vec<StepPlan>>> {
    let &[base, classes, width] = case else {
        bail!("the cases of plan are `BASE CLASSES WIDTH`, not {case:?}");
    };
    let base = match base {
        "fixmatch" => Base::FixMatch(FixMatch::default()),
        "flexmatch" => Base::FlexMatch(FlexMatch::default()),
        "softmatch" => Base::SoftMatch(SoftMatch::default()),
        other => bail!("there is no base algorithm `{other}`"),
    };
    let classes: usize = classes.parse().with_context(|| format!("`{classes}` is not a count"))?;
    let width: usize = width.parse().with_context(|| format!("`{width}` is not a count"))?;

    let mut method = paper(base);
    method.mixup.start = Start::at(0);
    let labelled: Vec<u64> = (0..LABELLED_SAMPLES).collect();
    let mut planner = Planner::new(method, classes, &labelled, SAMPLES as usize, Seed(3));
    let mut draws = Seed(1).stream(Domain::Init, 0, 0);
    let labels: Vec<u32> = (0..LABELLED).map(|_| draws.below(classes as u64) as u32).collect();
    let x = [normal(&mut draws, LABELLED * classes), normal(&mut draws, LABELLED * width)];
    let u = [normal(&mut draws, UNLABELLED * classes), normal(&mut draws, UNLABELLED * width)];

    let mut step = 0;
    let mut plan = move || {
        let x_ids: Vec<u64> = (0..LABELLED).map(|_| draws.below(LABELLED_SAMPLES)).collect();
        let u_ids: Vec<u64> = (0..UNLABELLED).map(|_| draws.below(SAMPLES)).collect();
        let observation = Observation {
            labelled: rows(&x_ids, &x, classes, width)?,
            labels: &labels,
            unlabelled: rows(&u_ids, &u, classes, width)?,
        };
        step += 1;
        let planned = planner.plan(&observation, &u_ids, RunStep { step, steps: 1 << 20 })?;
        Ok(planner.commit(planned))
    };
    Ok(move || (0..STEPS).map(|_| plan()).collect())
}

fn rows<'a>(ids: &'a [u64], [logits, features]: &'a [Vec<f32>; 2], c: usize, d: usize) -> Result<Rows<'a>> {
    Ok(Rows {
        ids,
        logits: Matrix::new(logits, ids.len(), c)?,
        features: Matrix::new(features, ids.len(), d)?,
    })
}

fn normal(draws: &mut Stream, count: usize) -> Vec<f32> {
    (0..count).map(|_| 2.0 * draws.normal() as f32).collect()
}
