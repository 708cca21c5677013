//! A run that is stopped at random moments, in every way in which users end a program, also inside its evaluations and
//! while it finishes: it ends in the bytes of an uninterrupted run, and a stop that the program can hear loses
//! nothing. `CALMIX_STOPS` sets how many stops there are at least; `--nocapture` prints what was seen.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use calmix_testkit::stop_program::{Way, stop_until_done};
use calmix_testkit::tiny_images::dataset;
use calmix_testkit::{run_bytes, tier};
use calmix_torch::run::checkpoint::newest;
use calmix_torch::run::events::Event;
use calmix_torch::run::read;

use crate::program;
use crate::program::new_workspace;

const WAYS: [Way; 7] = [
    Way::Interrupt,
    Way::Terminate,
    Way::HangUp,
    Way::TerminateTwice,
    Way::ClosedPipe,
    Way::FullDisk,
    Way::Kill,
];

const STEPS: u64 = 150;
/// Steps between checkpoints; evaluations come after other steps, and save the run too.
const INTERVAL: u64 = 9;

/// Evaluations take as long as the steps, and the end of the run takes as long as both.
const SETTINGS: [&str; 15] = [
    "labels.count=3",
    "labels.validation=0.34",
    "network.name=wrn-10-1",
    "augment.size=8",
    "train.steps=150",
    "train.batch=6",
    "train.ratio=2",
    "train.device=cpu",
    "train.precision=f32",
    "evaluate.every=25",
    "evaluate.batch=1",
    "evaluate.online=true",
    "evaluate.bootstrap=30000",
    "checkpoint.every=9",
    "log.every=1",
];

/// The step of the last event, and that of the newest checkpoint.
fn reached(run: &Path) -> (u64, u64) {
    let events = read::events(run).unwrap_or_default();
    let step = |event: &Event| if let Event::Step(step) = event { Some(step.step) } else { None };
    let found = newest(&run.join("checkpoints")).ok().flatten();
    (events.iter().filter_map(step).max().unwrap_or(0), found.map_or(0, |found| found.checkpoint.step()))
}

#[test]
fn stopped_run_ends_in_the_same_bytes() {
    // Every way once, or a hundred stops.
    let stops = tier::number("CALMIX_STOPS", WAYS.len() as u32, 100);
    let workspace = new_workspace();
    let data = workspace.path("data");
    dataset(&data);
    let command = |run: &Path| {
        let mut command = Command::new(program::calmix());
        if read::has_begun(run) {
            command.arg("resume").arg(run);
        } else {
            command.args(["train", "cpu-fashion-mnist", "--threads", "1", "--data"]).arg(&data);
            command.arg("--run-dir").arg(run);
            command.args(SETTINGS.iter().flat_map(|setting| ["--set", setting]));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let whole = workspace.path("whole");
    let (mut survived, mut finishing) = (0, 0);
    let mut lost: BTreeMap<Way, Vec<u64>> = BTreeMap::new();
    let mut slowest = Duration::ZERO;
    for round in 0.. {
        let stopped = workspace.path(&format!("stopped-{round}"));
        let mut saved_before = 0;
        let mut check = |way: Way, status: std::process::ExitStatus, took: Duration| {
            let (done, saved) = reached(&stopped);
            let case = format!("round {round}, {way:?}: {status}, step {done} was done and {saved} saved");
            let is_heard = !matches!(way, Way::Kill | Way::FullDisk);
            let code = match way {
                Way::Kill => None,
                Way::FullDisk => Some(1),
                Way::Interrupt => Some(130),
                _ => Some(75),
            };
            // A run that has not begun is removed; one that had nothing left to do but to end has ended.
            let is_early = !read::has_begun(&stopped) && status.code() == Some(130);
            // Before the program listens, a signal ends it: nothing was done, and nothing was lost.
            let is_deaf = is_heard && status.code().is_none() && saved == saved_before;
            assert!(status.success() || status.code() == code || is_early || is_deaf, "{case}");
            if is_heard && !is_deaf {
                assert!(status.success() || done == saved, "{case}");
                slowest = slowest.max(took);
            }
            assert!(done.max(saved_before) <= saved + INTERVAL, "{case}");
            let end = saved == STEPS && !stopped.join("result.json").exists();
            finishing += u32::from(end && !is_deaf);
            // A deaf process has cut nothing: what it found behind the checkpoint was lost before.
            lost.entry(way).or_default().push(if is_deaf { 0 } else { done.saturating_sub(saved) });
            saved_before = saved;
        };
        let ways = |stop: u32| WAYS[(survived + stop) as usize % WAYS.len()];
        survived += stop_until_done(&command, (&whole, &stopped), round, stops.min(12), &ways, &mut check);
        assert_eq!(run_bytes::differing(&whole, &stopped), Vec::<String>::new(), "round {round}");
        if survived >= stops {
            break;
        }
    }
    eprintln!("{survived} stops, {finishing} of them while finishing; slowest heard stop {slowest:?}");
    for (way, steps) in &lost {
        let most = steps.iter().max().unwrap();
        eprintln!("  {way:?}: {} stops, at most {most} steps to repeat", steps.len());
    }
    assert!(slowest < Duration::from_secs(25), "{slowest:?}");
}
