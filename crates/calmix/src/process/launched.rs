//! The processes of a command, which a launcher started or `--processes` requests, and the shard, threads and cores of this one.

use std::env;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use calmix_io::process::launch::LaunchInfo;

use crate::args::options::recipe::ProcessArgs;
use crate::error::CliError;
use crate::output::format::counted;
use crate::process::input_shard::InputShard;
use crate::terminal::warn;

/// Reads the rank of this process and its peers, if a launcher started it.
pub fn launch_variables() -> Result<Option<LaunchInfo>, CliError> {
    LaunchInfo::from_environment(|name| env::var(name).ok())
        .map_err(|error| CliError::invalid(error.to_string()))
}

/// Returns the shard of this process, if a launcher started several.
pub fn shard_of_launch(launch: &LaunchInfo) -> Option<InputShard> {
    InputShard::of_rank(launch.rank, launch.world)
}

/// Returns the number of threads of this process: the requested one, or its share of the cores of the machine.
pub fn threads_of_process(requested: Option<u16>, launch: Option<&LaunchInfo>) -> NonZeroUsize {
    let cores = available_parallelism().unwrap_or(NonZeroUsize::MIN).get();
    let share = cores / launch.map_or(1, |launch| launch.local_world.max(1));
    NonZeroUsize::new(requested.map_or(share, usize::from)).unwrap_or(NonZeroUsize::MIN)
}

/// The processes that train a run.
#[derive(Debug)]
pub struct Processes {
    /// The rank of this process among those that a launcher started.
    pub launch: Option<LaunchInfo>,
    /// The value of `--processes`.
    requested: Option<usize>,
}

impl Processes {
    /// This process alone.
    pub const ALONE: Self = Self { launch: None, requested: None };

    /// Returns the processes that the arguments and the variables of launchers define.
    pub fn of(args: &ProcessArgs) -> Result<Self, CliError> {
        Ok(Self { launch: launch_variables()?, requested: args.processes.map(usize::from) })
    }

    /// Returns how many processes this one has to start on this machine, if more than one.
    pub fn to_start(&self) -> Option<usize> {
        self.requested.filter(|&requested| requested > 1)
    }

    /// Returns the number of processes of the run.
    pub fn number(&self) -> usize {
        self.launch.as_ref().map(|launch| launch.world).or(self.to_start()).unwrap_or(1)
    }

    /// Returns the number of processes of the run on this machine.
    pub fn local(&self) -> usize {
        self.launch.as_ref().map(|launch| launch.local_world).or(self.to_start()).unwrap_or(1)
    }

    /// Returns whether this process prepares the run and prints.
    pub fn leads(&self) -> bool {
        self.launch.as_ref().is_none_or(|launch| launch.rank == 0)
    }

    /// Refuses `--processes` in a process that a launcher started.
    ///
    /// # Errors
    /// If `--processes` is given there, even if it is 1.
    pub fn refuse_both(&self) -> Result<(), CliError> {
        let (Some(launch), Some(_)) = (&self.launch, self.requested) else { return Ok(()) };
        let message = format!(
            "a launcher started this process as rank {} of {}; remove --processes",
            launch.rank, launch.world
        );
        Err(CliError::invalid(message))
    }
}

pub fn available() -> u64 {
    available_parallelism().map_or(1, NonZeroUsize::get) as u64
}

/// Warns if `processes` with `threads` each need more cores than this machine has: libtorch's threads spin while they wait for
/// each other.
pub fn warn_if_oversubscribed(threads: u32, processes: usize) {
    let message = more_than_cores(u64::from(threads), processes.max(1) as u64, available());
    if let Some(message) = message {
        warn(&message);
    }
}

fn more_than_cores(threads: u64, processes: u64, cores: u64) -> Option<String> {
    if threads * processes <= cores {
        return None;
    }
    let on = format!("{} on {}", counted(threads, "thread"), counted(cores, "core"));
    Some(match processes {
        1 => format!("{on}: much slower than --threads {cores}"),
        _ if processes > cores => {
            format!(
                "{processes} processes of {on}: much slower than {} of 1 thread",
                counted(cores, "process")
            )
        }
        _ => format!("{processes} processes of {on}: much slower than --threads {}", cores / processes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_than_cores() {
        let warning =
            |threads, processes, cores| more_than_cores(threads, processes, cores).unwrap_or_default();
        assert_eq!(warning(3, 1, 2), "3 threads on 2 cores: much slower than --threads 2");
        assert_eq!(warning(2, 2, 2), "2 processes of 2 threads on 2 cores: much slower than --threads 1");
        assert_eq!(
            warning(1, 3, 2),
            "3 processes of 1 thread on 2 cores: much slower than 2 processes of 1 thread"
        );
        assert_eq!([warning(2, 1, 2), warning(1, 2, 2), warning(2, 4, 8)], [""; 3]);
    }
}
