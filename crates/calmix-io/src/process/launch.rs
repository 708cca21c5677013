//! The rank of this process, as the launcher sets it in the environment.
//!
//! torchrun (which Kubeflow starts) and `calmix train --processes` set `RANK`, `WORLD_SIZE`, `LOCAL_RANK`,
//! `LOCAL_WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`; Slurm's `srun` sets variables of its own.

mod launch_info;
mod slurm;
mod torchrun;
mod variables;

pub use launch_info::{LaunchInfo, Launcher, StoreHost};
pub use variables::LaunchError;

use variables::LaunchVariables;

impl LaunchInfo {
    /// Reads the environment; `None` if no launcher has set it.
    ///
    /// # Errors
    ///
    /// When variables are missing, are not numbers, or contradict each other.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, LaunchError> {
        let variables = LaunchVariables { lookup: &|name| variable(name).filter(|value| !value.is_empty()) };
        match variables.text("RANK").or_else(|| variables.text("WORLD_SIZE")) {
            Some(_) => torchrun::launch_info(&variables).map(Some),
            None => slurm::launch_info(&variables),
        }
    }
}

#[cfg(test)]
mod tests;
