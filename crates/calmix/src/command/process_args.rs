//! `--processes`, and the environment variables of launchers.

use anyhow::Result;
use calmix::train::launch::LaunchInfo;
use clap::Args;

use crate::error::CliError;

/// Options for the processes that train a run.
#[derive(Debug, Args)]
pub(crate) struct ProcessArgs {
    /// Number of local processes; on several machines, use torchrun or srun
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    processes: Option<u16>,
    /// Continue a run that a process on another machine has not closed; only if you know that it has ended
    #[arg(long)]
    pub(crate) take_over: bool,
}

impl ProcessArgs {
    /// The rank of this process and its peers, if a launcher started it.
    pub(crate) fn launch_info(&self) -> Result<Option<LaunchInfo>> {
        let launch = LaunchInfo::from_environment(|name| std::env::var(name).ok())
            .map_err(|error| CliError::invalid(error.to_string()))?;
        if let (Some(launch), Some(_)) = (&launch, self.processes) {
            let message = format!(
                "a launcher started this process as rank {} of {}; remove --processes",
                launch.rank, launch.world
            );
            return Err(CliError::invalid(message).into());
        }
        Ok(launch)
    }

    /// Returns the number of processes to start, if more than one.
    pub(crate) fn to_start(&self) -> Option<usize> {
        self.processes.map(usize::from).filter(|&processes| processes > 1)
    }
}
