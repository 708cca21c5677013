//! Reads the variables that Slurm's `srun` sets for every task of a step.
//!
//! Its host lists (`node[01-04,7]`) are parsed by hand: the last release of the crate for them was in 2020.

use super::launch_info::{LaunchError, LaunchInfo, LaunchVariables, Launcher, StoreHost};

/// Reads the variables of a step with more than one task. The shell of `sbatch` or `salloc` also has `SLURM_PROCID`, but is
/// not a step.
pub(super) fn launch_info(variables: &LaunchVariables) -> Result<Option<LaunchInfo>, LaunchError> {
    let Some(step) = variables.text("SLURM_STEP_ID").or_else(|| variables.text("SLURM_STEPID")) else {
        return Ok(None);
    };
    let Some(rank) = variables.number("SLURM_PROCID")? else { return Ok(None) };
    let tasks = match variables.number("SLURM_STEP_NUM_TASKS")? {
        Some(tasks) => tasks,
        None => variables.required("SLURM_NTASKS", "SLURM_PROCID")?,
    };
    if tasks == 1 {
        return Ok(None);
    }
    let local_rank = variables.required("SLURM_LOCALID", "SLURM_PROCID")?;
    let job: u64 = variables.required("SLURM_JOB_ID", "SLURM_PROCID")?;
    let launch = LaunchInfo {
        rank,
        world: tasks,
        local_rank,
        local_world: local_tasks(variables)?.unwrap_or(local_rank + 1),
        master: (
            match variables.text("MASTER_ADDR") {
                Some(host) => host,
                None => first_host(variables)?,
            },
            variables.number("MASTER_PORT")?.unwrap_or_else(|| port(job, &step)),
        ),
        job: format!("{job}.{step}"),
        store_host: StoreHost::FirstRank,
        launcher: Launcher::Slurm,
    };
    launch.checked().map(Some)
}

/// Returns a port that differs between neighbouring jobs and steps, below the system's ephemeral ports.
fn port(job: u64, step: &str) -> u16 {
    let step = step.parse().unwrap_or(0_u64);
    20_000 + (job.wrapping_add(step.wrapping_mul(7919)) % 12_000) as u16
}

fn first_host(variables: &LaunchVariables) -> Result<String, LaunchError> {
    let names = ["SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"];
    let Some((name, list)) = names.iter().find_map(|name| Some((*name, variables.text(name)?))) else {
        return Err(LaunchError::Missing { missing: "SLURM_STEP_NODELIST", set: "SLURM_PROCID" });
    };
    let why = "it does not begin with a host, such as node03 or node[03-05,9]; set MASTER_ADDR to name one";
    first_host_in(&list).ok_or_else(|| LaunchError::Value { name, value: list, why: why.into() })
}

/// Returns the first host of a list: `node[03-05,9]` → `node03`, `a1,b[1-2]` → `a1`, `r[1-2]n[3-4]` → `r1n3`.
fn first_host_in(list: &str) -> Option<String> {
    let (mut host, mut rest) = (String::new(), list.trim());
    loop {
        let end = rest.find(['[', ',']).unwrap_or(rest.len());
        host.push_str(&rest[..end]);
        rest = &rest[end..];
        let Some(inside) = rest.strip_prefix('[') else { break };
        let (numbers, after) = inside.split_once(']')?;
        host.push_str(numbers.split(['-', ',']).next().filter(|number| !number.is_empty())?);
        rest = after;
    }
    Some(host).filter(|host| !host.is_empty() && !host.contains([']', ' ']))
}

/// Returns the number of tasks on this node: entry `SLURM_NODEID` of a list such as `4(x2),3`.
fn local_tasks(variables: &LaunchVariables) -> Result<Option<usize>, LaunchError> {
    let names = ["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"];
    let Some((name, list)) = names.iter().find_map(|name| Some((*name, variables.text(name)?))) else {
        return Ok(None);
    };
    let Some(node) = variables.number::<usize>("SLURM_NODEID")? else { return Ok(None) };
    let why = || format!("it does not contain the number of tasks on node {node}, as in 4(x2),3");
    let tasks = tasks_on_node(&list, node);
    tasks.map(Some).ok_or_else(|| LaunchError::Value { name, why: why(), value: list })
}

fn tasks_on_node(list: &str, node: usize) -> Option<usize> {
    let mut before = 0_usize;
    for entry in list.split(',') {
        let (tasks, times) = match entry.split_once("(x") {
            Some((tasks, times)) => (tasks, times.strip_suffix(')')?.parse().ok()?),
            None => (entry, 1),
        };
        before = before.checked_add(times)?;
        if node < before {
            return tasks.trim().parse().ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_host_of_a_list() {
        let cases = [
            ("node1", "node1"),
            ("node[03-05,9]", "node03"),
            ("node[9]", "node9"),
            ("a1,b[1-2]", "a1"),
            ("r[1-2]n[3-4],x", "r1n3"),
            ("gpu-a.cluster[10,12].local", "gpu-a.cluster10.local"),
        ];
        for (list, host) in cases {
            assert_eq!(first_host_in(list).as_deref(), Some(host), "{list}");
        }
        for broken in ["", ",a", "node[", "node[]", "node]", "node[1-2"] {
            assert_eq!(first_host_in(broken), None, "{broken}");
        }
    }

    #[test]
    fn the_tasks_of_a_node() {
        let of = |list| (0..4).map(|node| tasks_on_node(list, node)).collect::<Vec<_>>();
        assert_eq!(of("4(x2),3"), [Some(4), Some(4), Some(3), None]);
        assert_eq!(of("2"), [Some(2), None, None, None]);
        assert_eq!(of("2(x2),x"), [Some(2), Some(2), None, None]);
        assert_eq!(of("2(x"), [None; 4]);
    }

    #[test]
    fn neighbours_have_ports_of_their_own() {
        let ports = [port(7, "0"), port(8, "0"), port(7, "1"), port(u64::MAX, "batch")];
        assert!(ports.iter().all(|port| (20_000..32_000).contains(port)), "{ports:?}");
        assert!((0..3).all(|at| ports[at] != ports[at + 1]), "{ports:?}");
    }
}
