//! What happens to the others when one process dies, freezes, lags or is not one of them.

use std::time::{Duration, Instant};

use calmix_testkit::run_bytes::differing;
use calmix_testkit::tiny_images;
use calmix_train::trainer::StepPhase;

use super::crew::{Crew, Fault, What, free_port, wait_all};
use crate::made::Bench;

const SHORT: [&str; 6] = [
    "train.micro_batches=4",
    "train.batch=8",
    "train.steps=12",
    "checkpoint.every=4",
    "evaluate.every=6",
    "method.base=flexmatch",
];

/// Every one of four processes, killed at every moment of a step: the others notice within a second and say who it
/// was; the same command then finishes the run as if nothing had happened.
///
/// A process that is writing notices only after the disk has answered, which can take seconds on a busy machine; so a second is
/// the limit for nine of ten, and five seconds for all.
#[test]
fn kill_9_of_any_process_at_any_moment_changes_nothing() {
    let bench = Bench::new();
    let whole = Crew::new(&bench, "whole", &SHORT);
    whole.train(4);
    let mut delays = Vec::new();
    for moment in [StepPhase::Observe, StepPhase::Plan, StepPhase::Learn, StepPhase::Save] {
        for rank in 0..4 {
            let crew = Crew::new(&bench, &format!("{moment:?}-{rank}"), &SHORT);
            // The second checkpoint, so that there is one to go back to.
            let step = if moment == StepPhase::Save { 8 } else { 6 };
            let fault = Some(Fault { rank, moment, step, what: What::Dies });
            let ended = wait_all(Crew { fault, ..crew.clone() }.spawn(4));
            let died = ended[rank].at("died").unwrap();
            for (other, ended) in ended.iter().enumerate() {
                assert!(!ended.ended_well, "{moment:?}, {rank}: process {other} went on");
                if other != rank {
                    let named = ended.error.contains(&format!("rank {rank}"));
                    assert!(named, "{moment:?}: {rank} is not named by {other}: {}", ended.error);
                    let delay = ended.at("noticed").unwrap().saturating_sub(died);
                    delays.push((delay, format!("{other} of the death of {rank} in {moment:?}")));
                }
            }
            crew.train(4);
            assert_eq!(differing(&whole.run, &crew.run), Vec::<String>::new(), "{moment:?}, {rank}");
        }
    }
    delays.sort();
    let late = &delays[delays.len() * 9 / 10..];
    assert!(
        late[0].0 < Duration::from_secs(1) && late[late.len() - 1].0 < Duration::from_secs(5),
        "{late:?}"
    );
}

/// One process is requested to stop in an evaluation: all abandon it, save the run and end; the same command repeats it.
#[test]
fn stop_of_one_rank_abandons_evaluation_on_all() {
    let bench = Bench::new();
    let settings = [&SHORT[..], &["evaluate.batch=8", "evaluate.bootstrap=100"]].concat();
    let whole = Crew::new(&bench, "whole", &settings);
    whole.train(2);
    for (rank, step) in [(0, 6), (1, 6), (0, 12), (1, 12)] {
        let crew = Crew::new(&bench, &format!("{rank}-{step}"), &settings);
        let fault = Some(Fault { rank, moment: StepPhase::Evaluate, step, what: What::Stops });
        for ended in wait_all(Crew { fault, ..crew.clone() }.spawn(2)) {
            assert!(ended.ended_well && ended.error.contains(&format!("stopped: {step}")), "{}", ended.error);
        }
        assert!(!crew.run.join("result.json").exists(), "{rank}, {step}");
        crew.train(2);
        assert_eq!(differing(&whole.run, &crew.run), Vec::<String>::new(), "{rank}, {step}");
    }
}

/// One rank loses its data long after the last checkpoint: all save the state, and name that rank.
#[test]
fn data_lost_by_one_rank_stops_all_with_state_saved() {
    let bench = Bench::new();
    let settings = [&SHORT[..], &["checkpoint.every=100", "evaluate.every=100", "loader.memory=0"]].concat();
    let whole = Crew::new(&bench, "whole", &settings);
    whole.train(2);
    for rank in 0..2 {
        let crew = Crew::new(&bench, &format!("run-{rank}"), &settings);
        let own = bench.folder(&format!("own-{rank}"));
        tiny_images::dataset(&own);
        let fault = Some(Fault { rank, moment: StepPhase::Learn, step: 5, what: What::LosesData });
        let port = free_port();
        let command = |of: usize| {
            let data = if of == rank { own.clone() } else { bench.data() };
            Crew { data, fault, ..crew.clone() }.command(of, 2, port).spawn().unwrap()
        };
        let ended = wait_all((0..2).map(command).collect());
        for (of, ended) in ended.iter().enumerate() {
            let who = if of == rank { "sample ".to_owned() } else { format!("rank {rank}: sample ") };
            assert!(!ended.ended_well && ended.error.contains(&who), "{of}: {}", ended.error);
        }
        let step = calmix_run::read::inspect::inspect(&crew.run).unwrap().step;
        assert!(step >= Some(5), "{step:?}");
        // With the data of all.
        crew.train(2);
        let other_place = [
            "checkpoints/step-000000012/MANIFEST",
            "checkpoints/step-000000012/recipe.toml",
            "prepared/source.json",
            "recipe.toml",
        ];
        let changed = differing(&whole.run, &crew.run);
        assert!(changed.iter().all(|name| rank == 0 && other_place.contains(&name.as_str())), "{changed:?}");
    }
}

#[test]
fn frozen_rank_is_noticed_at_the_timeout() {
    let bench = Bench::new();
    let crew = Crew::new(&bench, "run", &[&SHORT[..], &["train.timeout=5"]].concat());
    let fault = Some(Fault { rank: 2, moment: StepPhase::Learn, step: 6, what: What::Freezes });
    let began = Instant::now();
    let mut children = Crew { fault, ..crew }.spawn(4);
    let mut frozen = children.remove(2);
    let ended = wait_all(children);
    assert!(began.elapsed() > Duration::from_secs(5));
    frozen.kill().unwrap();
    frozen.wait().unwrap();
    for ended in ended {
        assert!(ended.error.contains("rank 2"), "{}", ended.error);
        let after = ended.error.split("failed after ").nth(1).and_then(|rest| rest.split(' ').next());
        let after: f64 = after.unwrap().parse().unwrap();
        assert!((4.5..5.5).contains(&after), "{}", ended.error);
    }
}

#[test]
fn slow_rank_is_named_within_twenty_steps() {
    let bench = Bench::new();
    let crew = Crew::new(&bench, "run", &[&SHORT[..], &["train.steps=25"]].concat());
    let fault = Some(Fault { rank: 1, moment: StepPhase::Observe, step: 3, what: What::Lags });
    let mut ended = wait_all(Crew { fault, ..crew }.spawn(2)).into_iter();
    let first = ended.next().unwrap();
    assert!(first.ended_well, "{}", first.error);
    let notes: Vec<_> = first.error.lines().filter(|line| line.contains("all ranks wait for rank")).collect();
    assert!(notes.len() == 1 && notes[0].contains("all ranks wait for rank 1"), "{}", first.error);
}

#[test]
fn rank_of_another_run_is_refused_at_start() {
    let bench = Bench::new();
    let other_data = bench.folder("other");
    tiny_images::dataset(&other_data);
    let images = other_data.join("train-images-idx3-ubyte");
    let mut bytes = std::fs::read(&images).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&images, bytes).unwrap();
    let prepared = bench.folder("prepared");
    let spec = crate::made::recipe(&other_data, &[]).recipe.dataset.source_spec();
    calmix_data::prepare::prepare(&spec, &other_data, &prepared).unwrap();
    let prepared = format!("dataset.prepared={}", prepared.display());
    for (name, what, settings, data) in [
        ("rate", "recipe", &["optimiser.lr=0.07"][..], bench.data()),
        ("labels", "recipe", &["labels.seed=9"], bench.data()),
        ("files", "data", &[prepared.as_str()], other_data),
    ] {
        let crew = Crew::new(&bench, name, &SHORT);
        let mut stranger = crew.clone();
        stranger.settings.extend(settings.iter().map(ToString::to_string));
        stranger.data = data;
        let port = free_port();
        let children =
            [crew.command(0, 2, port).spawn().unwrap(), stranger.command(1, 2, port).spawn().unwrap()];
        let ended = wait_all(children.into());
        assert!(ended.iter().all(|ended| !ended.ended_well), "{name}");
        let who = if name == "files" { "rank 1: " } else { "rank 1 has a different recipe" };
        assert!(ended[0].error.contains(who) && ended[0].error.contains(what), "{name}: {}", ended[0].error);
        assert!(ended[1].error.contains(what), "{name}: {}", ended[1].error);
        assert!(!crew.run.join("model.safetensors").exists());
    }
}

#[test]
fn more_processes_than_micro_batches_are_refused() {
    let bench = Bench::new();
    for ended in wait_all(Crew::new(&bench, "run", &SHORT).spawn(5)) {
        assert!(ended.error.contains("5 processes cannot share 4 micro-batches"), "{}", ended.error);
    }
}
