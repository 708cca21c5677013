//! `calmix sweep`: many runs from one file, trained by any number of workers.

use anyhow::Result;

use crate::args::sweep::SweepArgs;
use crate::error::exit::Exit;
use crate::sweep::plan;
use crate::trainer::Trainers;

pub(super) fn run(args: &SweepArgs, trainers: &Trainers<'_>) -> Result<Exit> {
    plan::run(args, trainers)
}
