//! `calmix sweep` of runs on images, or on images and vectors.

use anyhow::Result;
use calmix::command::sweep_args::SweepArgs;
use calmix::exit::Exit;
use calmix::recipe::sweep::SweepCell;
use calmix::sweep::{SweepRun, VectorRun, plan};

use crate::sweep_cell::ImageRun;

pub(crate) fn run(args: &SweepArgs) -> Result<Exit> {
    let overrides = &args.overrides;
    let datasets = args.datasets.as_deref();
    plan::run(args, |cell: SweepCell| -> Result<Box<dyn SweepRun>> {
        if plan::is_on_vectors(&cell) {
            return Ok(Box::new(VectorRun::new(cell, overrides, datasets)?));
        }
        Ok(Box::new(ImageRun::new(cell, overrides, datasets)?))
    })
}
