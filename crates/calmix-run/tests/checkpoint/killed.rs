//! A process that is killed by the system, at any moment: `kill -9`, and a limit that it runs into.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use calmix_run::checkpoint::newest;
use calmix_run::error::RunError;
use calmix_run::run::{Mark, Run};

use super::state::{State, check, found, names, run_with, scratches};

const KILLS: u64 = 24;

/// The line of events of a step, of changing length.
fn line(step: u64) -> String {
    format!(r#"{{"step":{step},"loss":{}}}"#, 1.0 / step as f64)
}

fn lines(steps: std::ops::RangeInclusive<u64>) -> String {
    steps.map(|step| line(step) + "\n").collect()
}

/// What a training process does with its run, without the training: not a test, but what the tests below start.
#[test]
#[ignore = "the other tests of this file run it, in a process of its own"]
fn trains() {
    let Ok(folder) = std::env::var("CALMIX_TEST_RUN") else { return };
    let steps: u64 = std::env::var("CALMIX_TEST_STEPS").unwrap().parse().unwrap();
    let run = Run::open(&folder).unwrap();
    let mut checkpoints = run.checkpoints(2);
    let found = newest(checkpoints.folder()).unwrap();
    let (start, mark) = found.map_or((0, Mark::start()), |found| {
        check(&found.checkpoint);
        (found.checkpoint.step(), found.checkpoint.manifest().journal.clone())
    });
    let mut journal = run.journal(&mark).unwrap();
    for step in start + 1..=start.saturating_add(steps) {
        journal.append(&line(step)).unwrap();
        // Not at every step, so that there are events that no checkpoint knows.
        if step % 2 == 0 {
            let mark = journal.mark().unwrap();
            State::at(step).snapshot(step, mark, |snapshot| checkpoints.save(&snapshot)).unwrap();
        }
    }
}

/// This very program as a process of its own, through a shell that sets limits.
fn start(folder: &Path, limits: &str, steps: u64) -> Child {
    Command::new("sh")
        .args(["-c", &format!(r#"{limits} exec "$0" --exact checkpoint::killed::trains --ignored"#)])
        .arg(std::env::current_exe().unwrap())
        .env("CALMIX_TEST_RUN", folder)
        .env("CALMIX_TEST_STEPS", steps.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The newest step that has a name.
fn newest_name(folder: &Path) -> u64 {
    let names = names(&folder.join("checkpoints"));
    names.iter().filter_map(|name| name.strip_prefix("step-")?.parse().ok()).max().unwrap_or(0)
}

#[test]
fn kill_9_leaves_a_run_that_resumes_identically() {
    let (_temp, folder) = run_with(&[]);
    let mut last = 0;
    for kill in 0..KILLS {
        let mut child = start(&folder, "", u64::MAX);
        while newest_name(&folder) <= last {
            assert!(child.try_wait().unwrap().is_none(), "the process ended by itself after step {last}");
            sleep(Duration::from_millis(1));
        }
        // G2: the error names the process that holds the lock.
        let refused = Run::open(&folder).unwrap_err();
        assert!(matches!(&refused, RunError::Locked { .. }), "{refused}");
        assert!(refused.to_string().contains(&format!("process {} on ", child.id())), "{refused}");
        sleep(Duration::from_micros(kill * 7_919 % 12_000));
        child.kill().unwrap();
        child.wait().unwrap();

        assert!(scratches(&folder) <= 1);
        let found = found(&folder);
        assert!(found.skipped.is_empty(), "{:?}", found.skipped);
        assert!(found.checkpoint.step() > last, "{} steps back", last - found.checkpoint.step());
        last = found.checkpoint.step();

        // The lock is free, and the events are those of a run that was never killed.
        let run = Run::open(&folder).unwrap();
        drop(run.journal(&found.checkpoint.manifest().journal).unwrap());
        assert_eq!(fs::read_to_string(folder.join("events.jsonl")).unwrap(), lines(1..=last));
        assert_eq!(scratches(&folder), 0);
    }
}

/// D1, by the system itself: files may not become longer than a limit, which fails a write in its middle. Without
/// the trap the system kills the process there.
#[test]
fn file_size_limit_leaves_the_last_checkpoint() {
    let (_temp, folder) = run_with(&[]);
    assert!(start(&folder, "", 2).wait().unwrap().success());
    // The unit is 512 or 1,024 bytes, by the shell; margins are 68 kB, the model 4.6 kB, the manifest 0.8 kB.
    for (limit, trap) in
        [0, 1, 2, 4, 6, 8, 40, 60].into_iter().flat_map(|limit| [(limit, true), (limit, false)])
    {
        let limits = format!("{} ulimit -c 0; ulimit -f {limit};", if trap { "trap '' XFSZ;" } else { "" });
        let status = start(&folder, &limits, 3).wait().unwrap();
        assert!(!status.success(), "{limit}");
        assert_eq!(status.code().is_some(), trap, "{limit}: {status}");
        let found = found(&folder);
        assert_eq!((found.checkpoint.step(), found.skipped.len()), (2, 0), "{limit}");
        // What could be removed was, and after a kill the next start does it.
        assert!(scratches(&folder) <= usize::from(!trap), "{limit}");
    }
    assert!(start(&folder, "ulimit -f 10000;", 3).wait().unwrap().success());
    assert_eq!(found(&folder).checkpoint.step(), 4);
    assert_eq!(scratches(&folder), 0);
}
