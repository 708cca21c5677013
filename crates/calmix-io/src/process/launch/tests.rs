use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Option<LaunchInfo>, LaunchError> {
    LaunchInfo::from_environment(|asked| {
        variables.iter().find(|(name, _)| *name == asked).map(|(_, value)| (*value).to_owned())
    })
}

const TORCHRUN: &[(&str, &str)] = &[
    ("RANK", "3"),
    ("WORLD_SIZE", "4"),
    ("LOCAL_RANK", "1"),
    ("LOCAL_WORLD_SIZE", "2"),
    ("MASTER_ADDR", "first"),
    ("MASTER_PORT", "29400"),
    ("TORCHELASTIC_RUN_ID", "run"),
    ("TORCHELASTIC_USE_AGENT_STORE", "True"),
];

const SLURM: &[(&str, &str)] = &[
    ("SLURM_JOB_ID", "123456"),
    ("SLURM_STEP_ID", "0"),
    ("SLURM_PROCID", "5"),
    ("SLURM_NTASKS", "6"),
    ("SLURM_LOCALID", "1"),
    ("SLURM_NODEID", "2"),
    ("SLURM_STEP_TASKS_PER_NODE", "2(x3)"),
    ("SLURM_STEP_NODELIST", "node[03-05]"),
];

fn without(variables: &[(&'static str, &'static str)], name: &str) -> Vec<(&'static str, &'static str)> {
    variables.iter().copied().filter(|(other, _)| *other != name).collect()
}

fn with(
    variables: &[(&'static str, &'static str)],
    name: &'static str,
    value: &'static str,
) -> Vec<(&'static str, &'static str)> {
    [without(variables, name), vec![(name, value)]].concat()
}

#[test]
fn empty_environment_is_not_a_launch() {
    assert_eq!(read(&[]).unwrap(), None);
    assert_eq!(read(&[("MASTER_ADDR", "here"), ("RANK", "")]).unwrap(), None);
}

#[test]
fn torchrun_variables_are_read() {
    let launch = LaunchInfo {
        rank: 3,
        world: 4,
        local_rank: 1,
        local_world: 2,
        master: ("first".into(), 29400),
        job: "run".into(),
        store_host: StoreHost::Launcher,
        launcher: Launcher::Torchrun,
    };
    assert_eq!(read(TORCHRUN).unwrap(), Some(launch.clone()));
    // The same inside a Slurm step.
    assert_eq!(read(&[TORCHRUN, SLURM].concat()).unwrap(), Some(launch));
    let static_store = read(&with(TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE", "False"));
    assert_eq!(static_store.expect("valid").expect("launched").store_host.rank(), Some(0));
}

#[test]
fn kubeflow_without_local_variables_is_read() {
    let four = TORCHRUN
        .iter()
        .copied()
        .filter(|(name, _)| ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"].contains(name));
    let launch = read(&four.collect::<Vec<_>>()).expect("valid").expect("launched");
    assert_eq!((launch.local_rank, launch.local_world), (0, 1));
    assert_eq!((launch.store_host, launch.launcher), (StoreHost::FirstRank, Launcher::Variables));
}

#[test]
fn the_variables_of_a_launch_are_read_back() {
    let launch = LaunchInfo {
        job: String::new(),
        store_host: StoreHost::FirstRank,
        launcher: Launcher::Variables,
        ..read(TORCHRUN).expect("valid").expect("launched")
    };
    let variables = launch.variables();
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(read(&variables).unwrap(), Some(launch));
}

#[test]
fn slurm_variables_are_read() {
    let launch = read(SLURM).expect("valid").expect("launched");
    assert_eq!((launch.rank, launch.world, launch.local_rank, launch.local_world), (5, 6, 1, 2));
    assert_eq!(launch.master, ("node03".into(), 20_000 + (123_456 % 12_000) as u16));
    assert_eq!(launch.job, "123456.0");
    assert_eq!((launch.store_host.rank(), launch.launcher), (Some(0), Launcher::Slurm));
    let chosen = [SLURM, &[("MASTER_PORT", "4000"), ("MASTER_ADDR", "other")]].concat();
    assert_eq!(read(&chosen).expect("valid").expect("launched").master, ("other".into(), 4000));
}

#[test]
fn slurm_shell_is_not_a_launch() {
    assert_eq!(read(&without(SLURM, "SLURM_STEP_ID")).unwrap(), None);
    assert_eq!(read(&with(&with(SLURM, "SLURM_NTASKS", "1"), "SLURM_PROCID", "0")).unwrap(), None);
}

#[test]
fn missing_variables_are_refused_by_name() {
    for (given, name) in [
        (without(TORCHRUN, "RANK"), "RANK"),
        (without(TORCHRUN, "WORLD_SIZE"), "WORLD_SIZE"),
        (without(TORCHRUN, "MASTER_ADDR"), "MASTER_ADDR"),
        (without(TORCHRUN, "MASTER_PORT"), "MASTER_PORT"),
        (without(SLURM, "SLURM_NTASKS"), "SLURM_NTASKS"),
        (without(SLURM, "SLURM_LOCALID"), "SLURM_LOCALID"),
        (without(SLURM, "SLURM_STEP_NODELIST"), "SLURM_STEP_NODELIST"),
    ] {
        let message = read(&given).expect_err(name).to_string();
        assert!(message.contains(&format!("{name} is not")), "{name}: {message}");
    }
}

#[test]
fn contradictions_are_refused_by_name() {
    for (given, start) in [
        (with(TORCHRUN, "RANK", "4"), "RANK=4 "),
        (with(TORCHRUN, "RANK", "-1"), "RANK=-1 "),
        (with(TORCHRUN, "RANK", "one"), "RANK=one "),
        (with(TORCHRUN, "WORLD_SIZE", "0"), "WORLD_SIZE=0 "),
        (with(TORCHRUN, "LOCAL_RANK", "2"), "LOCAL_RANK=2 "),
        (with(TORCHRUN, "LOCAL_WORLD_SIZE", "5"), "LOCAL_RANK=1 "),
        (with(TORCHRUN, "MASTER_PORT", "70000"), "MASTER_PORT=70000 "),
        (with(SLURM, "SLURM_PROCID", "6"), "SLURM_PROCID=6 "),
        (with(SLURM, "SLURM_STEP_NODELIST", "node["), "SLURM_STEP_NODELIST=node[ "),
        (with(SLURM, "SLURM_NODEID", "3"), "SLURM_STEP_TASKS_PER_NODE=2(x3) "),
    ] {
        let message = read(&given).expect_err(start).to_string();
        assert!(message.starts_with(start), "{start}: {message}");
    }
}
