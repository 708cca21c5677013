//! The rank and job of a process, and the environment variables that hold them.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// The settings from a launcher: the rank of this process, and how it reaches its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchInfo {
    /// The rank of this process, from 0.
    pub rank: usize,
    /// The number of processes.
    pub world: usize,
    /// The rank of this process on its host, which is also the number of its GPU.
    pub local_rank: usize,
    /// The number of processes on this host.
    pub local_world: usize,
    /// The host and port of the rendezvous store.
    pub master: (String, u16),
    /// The launcher's name for the job. It separates the processes of two jobs on the same port.
    pub job: String,
    /// Which process hosts the store.
    pub store_host: StoreHost,
    /// The launcher that set the variables.
    pub launcher: Launcher,
}

/// The process that hosts the rendezvous store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreHost {
    /// Rank 0.
    FirstRank,
    Launcher,
}

impl StoreHost {
    /// Returns the rank that hosts the store; `None` if the launcher hosts it.
    pub fn rank(self) -> Option<usize> {
        (self == Self::FirstRank).then_some(0)
    }
}

/// The program that started the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    /// PyTorch's `torchrun`.
    Torchrun,
    /// Slurm's `srun`.
    Slurm,
    /// Another program that sets torchrun's variables: Kubeflow, `calmix train --processes`, a script.
    Variables,
}

impl LaunchInfo {
    /// Returns the environment variables that pass these settings to a process, as torchrun sets them.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("RANK", self.rank.to_string()),
            ("WORLD_SIZE", self.world.to_string()),
            ("LOCAL_RANK", self.local_rank.to_string()),
            ("LOCAL_WORLD_SIZE", self.local_world.to_string()),
            ("MASTER_ADDR", self.master.0.clone()),
            ("MASTER_PORT", self.master.1.to_string()),
        ]
    }

    /// Refuses inconsistent numbers.
    pub(super) fn checked(self) -> Result<Self, LaunchError> {
        let (rank_name, world_name, local_name) = match self.launcher {
            Launcher::Slurm => ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
            _ => ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
        };
        let wrong =
            |name, value: usize, why: String| Err(LaunchError::Value { name, value: value.to_string(), why });
        if self.world == 0 {
            return wrong(world_name, 0, "at least one process is needed".into());
        }
        if self.rank >= self.world {
            let why = format!("{world_name} is {}, and ranks start at 0", self.world);
            return wrong(rank_name, self.rank, why);
        }
        if self.local_rank >= self.local_world || self.local_world > self.world {
            let why =
                format!("there are {} processes on this host, but {} in total", self.local_world, self.world);
            return wrong(local_name, self.local_rank, why);
        }
        Ok(self)
    }
}

/// A problem with the variables of a launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchError {
    /// A variable is missing although another one is set.
    Missing {
        /// The missing variable.
        missing: &'static str,
        /// The variable that is set.
        set: &'static str,
    },
    /// The value of a variable is invalid.
    Value {
        /// The variable.
        name: &'static str,
        value: String,
        /// What is wrong with it.
        why: String,
    },
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { missing, set } => write!(
                f,
                "{set} is set, but {missing} is not: a launcher sets both; to run a single process, unset {set}"
            ),
            Self::Value { name, value, why } => write!(f, "{name}={value} is invalid: {why}"),
        }
    }
}

impl Error for LaunchError {}

/// Reads environment variables as texts and numbers.
pub(super) struct LaunchVariables<'a> {
    pub(super) lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl LaunchVariables<'_> {
    pub(super) fn text(&self, name: &str) -> Option<String> {
        (self.lookup)(name)
    }

    pub(super) fn number<N: FromStr>(&self, name: &'static str) -> Result<Option<N>, LaunchError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match value.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => {
                Err(LaunchError::Value { name, value, why: "it is not a number in the valid range".into() })
            }
        }
    }

    pub(super) fn required<N: FromStr>(
        &self,
        name: &'static str,
        set: &'static str,
    ) -> Result<N, LaunchError> {
        self.number(name)?.ok_or(LaunchError::Missing { missing: name, set })
    }

    pub(super) fn required_text(&self, name: &'static str, set: &'static str) -> Result<String, LaunchError> {
        self.text(name).ok_or(LaunchError::Missing { missing: name, set })
    }
}
