//! The processes of a command: those that a launcher started, or that `--processes` asks for; the shard and the threads of this one.

use std::env;
use std::num::NonZeroUsize;
use std::thread;

use calmix_io::process::launch::LaunchInfo;

use crate::args::options::process::ProcessArgs;
use crate::error::CliError;
use crate::process::input_shard::InputShard;

/// The rank of this process and its peers, if a launcher started it.
///
/// # Errors
/// If the variables contradict each other.
pub fn launch_variables() -> Result<Option<LaunchInfo>, CliError> {
    LaunchInfo::from_environment(|name| env::var(name).ok())
        .map_err(|error| CliError::invalid(error.to_string()))
}

/// The shard of this process, if a launcher started several.
pub fn shard_of_launch(launch: &LaunchInfo) -> Option<InputShard> {
    InputShard::of_rank(launch.rank, launch.world)
}

/// The threads of this process, unless it is asked for some: the processes of a machine share its cores.
pub fn threads_of_process(asked: Option<u16>, launch: Option<&LaunchInfo>) -> NonZeroUsize {
    let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN).get();
    let own = cores / launch.map_or(1, |launch| launch.local_world.max(1));
    NonZeroUsize::new(asked.map_or(own, usize::from)).unwrap_or(NonZeroUsize::MIN)
}

/// The processes that train a run.
#[derive(Debug)]
pub struct Processes {
    /// The place of this process among those that a launcher started.
    pub launch: Option<LaunchInfo>,
    /// What `--processes` says.
    asked: Option<usize>,
}

impl Processes {
    /// This process alone.
    pub const ALONE: Self = Self { launch: None, asked: None };

    /// The processes that the arguments and the variables of launchers name.
    ///
    /// # Errors
    /// If the variables contradict each other.
    pub fn of(args: &ProcessArgs) -> Result<Self, CliError> {
        Ok(Self { launch: launch_variables()?, asked: args.processes.map(usize::from) })
    }

    /// The processes of this machine that this one has to start, if more than one.
    pub fn to_start(&self) -> Option<usize> {
        self.asked.filter(|&asked| asked > 1)
    }

    /// All processes of the run.
    pub fn number(&self) -> usize {
        self.launch.as_ref().map(|launch| launch.world).or(self.to_start()).unwrap_or(1)
    }

    /// Those on this machine.
    pub fn local(&self) -> usize {
        self.launch.as_ref().map(|launch| launch.local_world).or(self.to_start()).unwrap_or(1)
    }

    /// Whether this process prepares the run and prints.
    pub fn leads(&self) -> bool {
        self.launch.as_ref().is_none_or(|launch| launch.rank == 0)
    }

    /// Refuses to start processes in one that a launcher started.
    ///
    /// # Errors
    /// If `--processes` is given there, even if it is 1.
    pub fn refuse_both(&self) -> Result<(), CliError> {
        let (Some(launch), Some(_)) = (&self.launch, self.asked) else { return Ok(()) };
        let message = format!(
            "a launcher started this process as rank {} of {}; remove --processes",
            launch.rank, launch.world
        );
        Err(CliError::invalid(message))
    }
}
