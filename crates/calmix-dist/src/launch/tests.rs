use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Option<Place>, LaunchError> {
    Place::from_environment(|asked| {
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
    ("TORCHELASTIC_RESTART_COUNT", "2"),
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
fn nothing_set_is_no_launch() {
    assert_eq!(read(&[]), Ok(None));
    assert_eq!(read(&[("MASTER_ADDR", "here"), ("RANK", "")]), Ok(None));
}

#[test]
fn torchrun_says_everything() {
    let place = Place {
        rank: 3,
        world: 4,
        local_rank: 1,
        local_world: 2,
        master: ("first".into(), 29400),
        attempt: 2,
        job: "run".into(),
        keeper: Keeper::Launcher,
        launcher: Launcher::Torchrun,
    };
    assert_eq!(read(TORCHRUN), Ok(Some(place.clone())));
    // Inside a step of Slurm too.
    assert_eq!(read(&[TORCHRUN, SLURM].concat()), Ok(Some(place)));
    let static_store = read(&with(TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE", "False"));
    assert_eq!(static_store.expect("valid").expect("launched").keeper.rank(), Some(0));
}

#[test]
fn kubeflow_leaves_out_what_is_local() {
    let four = TORCHRUN
        .iter()
        .copied()
        .filter(|(name, _)| ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"].contains(name));
    let place = read(&four.collect::<Vec<_>>()).expect("valid").expect("launched");
    assert_eq!((place.local_rank, place.local_world, place.attempt), (0, 1, 0));
    assert_eq!((place.keeper, place.launcher), (Keeper::FirstRank, Launcher::Variables));
}

#[test]
fn what_we_tell_a_process_is_what_it_reads() {
    let place = Place {
        attempt: 0,
        job: String::new(),
        keeper: Keeper::FirstRank,
        launcher: Launcher::Variables,
        ..read(TORCHRUN).expect("valid").expect("launched")
    };
    let told = place.variables();
    let told: Vec<(&str, &str)> = told.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(read(&told), Ok(Some(place)));
}

#[test]
fn slurm_says_the_same_in_its_own_words() {
    let place = read(SLURM).expect("valid").expect("launched");
    assert_eq!((place.rank, place.world, place.local_rank, place.local_world), (5, 6, 1, 2));
    assert_eq!(place.master, ("node03".into(), 20_000 + (123_456 % 12_000) as u16));
    assert_eq!((place.job.as_str(), place.attempt), ("123456.0", 0));
    assert_eq!((place.keeper.rank(), place.launcher), (Some(0), Launcher::Slurm));
    let chosen = [SLURM, &[("MASTER_PORT", "4000"), ("MASTER_ADDR", "other")]].concat();
    assert_eq!(read(&chosen).expect("valid").expect("launched").master, ("other".into(), 4000));
    let restarted = read(&with(SLURM, "SLURM_RESTART_COUNT", "1"));
    assert_eq!(restarted.expect("valid").expect("launched").attempt, 1);
}

#[test]
fn a_shell_in_an_allocation_is_no_launch() {
    assert_eq!(read(&without(SLURM, "SLURM_STEP_ID")), Ok(None));
    assert_eq!(read(&with(&with(SLURM, "SLURM_NTASKS", "1"), "SLURM_PROCID", "0")), Ok(None));
}

#[test]
fn half_of_it_is_refused_by_name() {
    for (given, name) in [
        (without(TORCHRUN, "RANK"), "RANK"),
        (without(TORCHRUN, "WORLD_SIZE"), "WORLD_SIZE"),
        (without(TORCHRUN, "MASTER_ADDR"), "MASTER_ADDR"),
        (without(TORCHRUN, "MASTER_PORT"), "MASTER_PORT"),
        (without(SLURM, "SLURM_NTASKS"), "SLURM_NTASKS"),
        (without(SLURM, "SLURM_LOCALID"), "SLURM_LOCALID"),
        (without(SLURM, "SLURM_STEP_NODELIST"), "SLURM_STEP_NODELIST"),
    ] {
        let said = read(&given).expect_err(name).to_string();
        assert!(said.contains(&format!("{name} is not")), "{name}: {said}");
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
        let said = read(&given).expect_err(start).to_string();
        assert!(said.starts_with(start), "{start}: {said}");
    }
}
