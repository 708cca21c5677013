//! Several processes for one run.

use anyhow::Result;
use calmix::train::launch::Place;
use clap::Args;

use crate::failure::Mistake;

/// Several processes for one run.
#[derive(Debug, Args)]
pub(crate) struct Many {
    /// Train in so many processes of this machine; torchrun and srun start them on several
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    processes: Option<u16>,
}

impl Many {
    /// Which process this is, if a launcher has started it.
    pub(crate) fn place(&self) -> Result<Option<Place>> {
        let place = Place::from_environment(|name| std::env::var(name).ok())
            .map_err(|error| Mistake::new(error.to_string()))?;
        if let (Some(place), Some(_)) = (&place, self.processes) {
            let what = format!(
                "this is already process {} of {}, which a launcher has started: leave --processes out",
                place.rank, place.world
            );
            return Err(Mistake::new(what).into());
        }
        Ok(place)
    }

    /// How many processes are to be started, if it is more than this one.
    pub(crate) fn to_start(&self) -> Option<usize> {
        self.processes.map(usize::from).filter(|&processes| processes > 1)
    }
}
