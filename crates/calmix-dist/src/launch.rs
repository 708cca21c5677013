//! Who we are among the processes of a job, as the launcher says it in the environment.
//!
//! torchrun (which Kubeflow starts) and `calmix train --processes` set `RANK`, `WORLD_SIZE`, `LOCAL_RANK`, `LOCAL_WORLD_SIZE`,
//! `MASTER_ADDR` and `MASTER_PORT`; Slurm's `srun` sets variables of its own.

mod slurm;

use std::str::FromStr;

/// A process among the processes of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Which one this is, from 0.
    pub rank: usize,
    /// How many there are.
    pub world: usize,
    /// Which one this is on its host; its GPU has the same number.
    pub local_rank: usize,
    /// How many there are on this host.
    pub local_world: usize,
    /// Where the store is that they meet at.
    pub master: (String, u16),
    /// How often the job has been started again.
    pub attempt: u32,
    /// What the launcher calls the job: two jobs that were given the same port do not take each other's processes.
    pub job: String,
    /// Who keeps the store.
    pub keeper: Keeper,
    /// Who said all that.
    pub launcher: Launcher,
}

/// Who keeps the store at which processes meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeper {
    /// Rank 0.
    FirstRank,
    /// The launcher; nobody of us.
    Launcher,
}

impl Keeper {
    /// The rank that keeps the store, where it is one.
    pub fn rank(self) -> Option<usize> {
        (self == Self::FirstRank).then_some(0)
    }
}

/// Who started the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    /// PyTorch's `torchrun`.
    Torchrun,
    /// Slurm's `srun`.
    Slurm,
    /// Whoever set torchrun's variables: Kubeflow, `calmix train --processes`, a script.
    Variables,
}

/// An environment that says half of who we are, or contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// Others are set without it.
    #[error("{set} is set, but {missing} is not: a launcher sets both; for a single process unset {set}")]
    Missing {
        /// What lacks.
        missing: &'static str,
        /// What made us look for it.
        set: &'static str,
    },
    /// A value that cannot be.
    #[error("{name}={value} cannot be: {why}")]
    Value {
        /// The variable.
        name: &'static str,
        /// What it says.
        value: String,
        /// What is wrong with that.
        why: String,
    },
}

impl Place {
    /// Reads an environment; `None` where no launcher has set anything.
    ///
    /// # Errors
    ///
    /// When variables are missing, are no numbers, or contradict each other.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, LaunchError> {
        let environment = Environment { variable: &|name| variable(name).filter(|value| !value.is_empty()) };
        match environment.text("RANK").or_else(|| environment.text("WORLD_SIZE")) {
            Some(_) => torchrun(&environment).map(Some),
            None => slurm::place(&environment),
        }
    }

    /// The variables that say this to a process, as torchrun sets them.
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

    fn checked(self) -> Result<Self, LaunchError> {
        let (rank_name, world_name, local_name) = match self.launcher {
            Launcher::Slurm => ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
            _ => ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
        };
        let wrong =
            |name, value: usize, why: String| Err(LaunchError::Value { name, value: value.to_string(), why });
        if self.world == 0 {
            return wrong(world_name, 0, "there is at least one process".into());
        }
        if self.rank >= self.world {
            let why = format!("{world_name} is {}, and ranks begin at 0", self.world);
            return wrong(rank_name, self.rank, why);
        }
        if self.local_rank >= self.local_world || self.local_world > self.world {
            let why =
                format!("there are {} processes on this host, and {} in all", self.local_world, self.world);
            return wrong(local_name, self.local_rank, why);
        }
        Ok(self)
    }
}

fn torchrun(environment: &Environment) -> Result<Place, LaunchError> {
    let set = if environment.text("RANK").is_some() { "RANK" } else { "WORLD_SIZE" };
    let local_rank = environment.number("LOCAL_RANK")?;
    let run = environment.text("TORCHELASTIC_RUN_ID");
    let agent = environment.text("TORCHELASTIC_USE_AGENT_STORE");
    Place {
        rank: environment.needed("RANK", set)?,
        world: environment.needed("WORLD_SIZE", set)?,
        // Kubeflow starts one process a host and says neither.
        local_rank: local_rank.unwrap_or(0),
        local_world: environment.number("LOCAL_WORLD_SIZE")?.unwrap_or(local_rank.unwrap_or(0) + 1),
        master: (environment.needed_text("MASTER_ADDR", set)?, environment.needed("MASTER_PORT", set)?),
        attempt: environment.number("TORCHELASTIC_RESTART_COUNT")?.unwrap_or(0),
        keeper: if agent.is_some_and(|agent| agent.eq_ignore_ascii_case("true")) {
            Keeper::Launcher
        } else {
            Keeper::FirstRank
        },
        launcher: if run.is_some() { Launcher::Torchrun } else { Launcher::Variables },
        job: run.unwrap_or_default(),
    }
    .checked()
}

/// Variables by name, as texts and as numbers.
struct Environment<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Environment<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name)
    }

    fn number<N: FromStr>(&self, name: &'static str) -> Result<Option<N>, LaunchError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match value.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(LaunchError::Value { name, value, why: "it is not such a number".into() }),
        }
    }

    fn needed<N: FromStr>(&self, name: &'static str, set: &'static str) -> Result<N, LaunchError> {
        self.number(name)?.ok_or(LaunchError::Missing { missing: name, set })
    }

    fn needed_text(&self, name: &'static str, set: &'static str) -> Result<String, LaunchError> {
        self.text(name).ok_or(LaunchError::Missing { missing: name, set })
    }
}

#[cfg(test)]
mod tests;
