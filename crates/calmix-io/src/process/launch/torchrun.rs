//! The variables that torchrun sets, and whatever sets the same ones.

use super::launch_info::{LaunchInfo, Launcher, StoreHost};
use super::variables::{LaunchError, LaunchVariables};

/// Reads the variables of torchrun; at least one of `RANK` and `WORLD_SIZE` is set.
pub(super) fn launch_info(variables: &LaunchVariables) -> Result<LaunchInfo, LaunchError> {
    let set = if variables.text("RANK").is_some() { "RANK" } else { "WORLD_SIZE" };
    let local_rank = variables.number("LOCAL_RANK")?;
    let run = variables.text("TORCHELASTIC_RUN_ID");
    let agent = variables.text("TORCHELASTIC_USE_AGENT_STORE");
    LaunchInfo {
        rank: variables.needed("RANK", set)?,
        world: variables.needed("WORLD_SIZE", set)?,
        // Kubeflow starts one process on each host and sets neither.
        local_rank: local_rank.unwrap_or(0),
        local_world: variables.number("LOCAL_WORLD_SIZE")?.unwrap_or(local_rank.unwrap_or(0) + 1),
        master: (variables.needed_text("MASTER_ADDR", set)?, variables.needed("MASTER_PORT", set)?),
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
