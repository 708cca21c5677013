//! What the variables of a launcher mean for a command that shares its inputs out: its shard and its threads.

use std::env;
use std::num::NonZeroUsize;
use std::thread;

use calmix_io::process::launch::LaunchInfo;

use crate::error::CliError;
use crate::input_shard::InputShard;

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
