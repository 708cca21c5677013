//! `calmix sweep` of heads. A sweep with a whole network is trained by `calmix-torch`.

use anyhow::Result;

use super::sweep_args::SweepArgs;
use crate::exit::Exit;
use crate::sweep::{HeadCell, plan};

pub(super) fn run(args: &SweepArgs) -> Result<Exit> {
    plan::run(args, |cell| Ok(Box::new(HeadCell::new(cell, &args.overrides, args.datasets.as_deref())?)))
}
