//! `calmix sweep` of runs on vectors.

use anyhow::Result;

use super::sweep_args::SweepArgs;
use crate::exit::Exit;
use crate::sweep::{VectorRun, plan};

pub(super) fn run(args: &SweepArgs) -> Result<Exit> {
    let datasets = args.datasets.as_deref();
    plan::run(args, |cell| Ok(Box::new(VectorRun::new(cell, &args.overrides, datasets)?)))
}
