//! `calmix sweep` of runs of which at least one trains a whole network.

use anyhow::Result;
use calmix::command::sweep_args::SweepArgs;
use calmix::exit::Exit;
use calmix::recipe::sweep::SweepCell;
use calmix::sweep::{HeadCell, SweepRun, plan};

use crate::network_cell::NetworkCell;

pub(crate) fn run(args: &SweepArgs) -> Result<Exit> {
    let overrides = &args.overrides;
    let datasets = args.datasets.as_deref();
    plan::run(args, |cell: SweepCell| -> Result<Box<dyn SweepRun>> {
        if plan::trains_head(&cell, overrides) {
            return Ok(Box::new(HeadCell::new(cell, overrides, datasets)?));
        }
        Ok(Box::new(NetworkCell::new(cell, overrides, datasets)?))
    })
}
