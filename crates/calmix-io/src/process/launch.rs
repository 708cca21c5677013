//! The rank of this process, as the launcher sets it in the environment.
//!
//! torchrun (which Kubeflow starts) and `calmix train --processes` set `RANK`, `WORLD_SIZE`, `LOCAL_RANK`,
//! `LOCAL_WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`; Slurm's `srun` sets variables of its own.

mod launch_info;
mod slurm;
#[cfg(test)]
mod tests;

pub use launch_info::{LaunchError, LaunchInfo, Launcher, StoreHost};

use launch_info::LaunchVariables;

impl LaunchInfo {
    /// Reads the environment; `None` if no launcher has set it.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, LaunchError> {
        let variables = LaunchVariables { lookup: &|name| variable(name).filter(|value| !value.is_empty()) };
        match variables.text("RANK").or_else(|| variables.text("WORLD_SIZE")) {
            Some(_) => torchrun_launch(&variables).map(Some),
            None => slurm::launch_info(&variables),
        }
    }
}

/// Reads torchrun's variables; at least one of `RANK` and `WORLD_SIZE` is set.
fn torchrun_launch(variables: &LaunchVariables<'_>) -> Result<LaunchInfo, LaunchError> {
    let set = if variables.text("RANK").is_some() { "RANK" } else { "WORLD_SIZE" };
    let local_rank = variables.number("LOCAL_RANK")?;
    let run = variables.text("TORCHELASTIC_RUN_ID");
    let agent = variables.text("TORCHELASTIC_USE_AGENT_STORE");
    LaunchInfo {
        rank: variables.required("RANK", set)?,
        world: variables.required("WORLD_SIZE", set)?,
        // Kubeflow starts one process per host and sets neither.
        local_rank: local_rank.unwrap_or(0),
        local_world: variables.number("LOCAL_WORLD_SIZE")?.unwrap_or(local_rank.unwrap_or(0) + 1),
        master: (variables.required_text("MASTER_ADDR", set)?, variables.required("MASTER_PORT", set)?),
        store_host: if agent.is_some_and(|agent| agent.eq_ignore_ascii_case("true")) {
            StoreHost::Launcher
        } else {
            StoreHost::FirstRank
        },
        launcher: if run.is_some() { Launcher::Torchrun } else { Launcher::Variables },
        job: run.unwrap_or_default(),
    }
    .checked()
}
