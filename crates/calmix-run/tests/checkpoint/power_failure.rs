//! A power failure at every call that changes the disk, after which what was not synchronised may be gone.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use calmix_io::disk::Disk;
use calmix_run::checkpoint::{Committed, newest};
use calmix_run::error::RunError;
use calmix_run::run::{Mark, Run, RunFile};
use calmix_testkit::faulty_disk::{Fault, FaultyDisk};
use calmix_testkit::tier;

use super::forgetful::{ForgetfulDisk, Survives};
use super::state::{State, check, copy, identity, names, place, run_with, save};

/// Does `act` on a copy of `base`, in a folder called `run`, and lets the power fail before each of its calls and after
/// the last. `holds` gets the folder after the failure, and what `act` returned before it.
#[track_caller]
fn survives_every_failure<T>(
    base: Option<&Path>,
    act: impl Fn(&Path, Arc<dyn Disk>) -> Option<T>,
    holds: impl Fn(&Path, Option<&T>, &str),
) {
    let temp = tempfile::tempdir().unwrap();
    let [live, after] = ["live", "after"].map(|name| temp.path().join(name));
    for fails_at in 0.. {
        let _ = fs::remove_dir_all(&live);
        fs::create_dir(&live).unwrap();
        if let Some(base) = base {
            copy(base, &live.join("run"));
        }
        let disk = Arc::new(ForgetfulDisk::new(&live, fails_at));
        let done = act(&live.join("run"), disk.clone());
        let drawn = (0..tier::number("CALMIX_DRAWN", 3, 100)).map(|seed| Survives::Drawn(seed.into()));
        let fixed = [Survives::Nothing, Survives::Everything, Survives::Names, Survives::Bytes];
        for survives in fixed.into_iter().chain(drawn) {
            disk.restart(survives, &after);
            let calls = disk.calls();
            let case = format!("{survives:?} survives a failure after {:?}, call {fails_at}", calls.last());
            holds(&after.join("run"), done.as_ref(), &case);
        }
        if disk.calls().len() < fails_at {
            return;
        }
    }
}

fn open(folder: &Path) -> Result<Run, RunError> {
    Run::open_on(folder, FaultyDisk::sound())
}

/// The events of a run up to a step.
fn lines(step: u64) -> String {
    let lines: Vec<_> = (1..=step).map(|step| format!("{{\"step\":{step}}}\n")).collect();
    lines.concat()
}

/// Goes on from the newest checkpoint to `step`, with a line of events for each step.
fn train(folder: &Path, disk: Arc<dyn Disk>, step: u64) -> Option<Committed> {
    let run = Run::open_on(folder, disk).ok()?;
    let mut checkpoints = run.checkpoints(2);
    let found = newest(checkpoints.folder()).unwrap();
    let (start, mark) = found.map_or((0, Mark::start()), |found| {
        (found.checkpoint.step(), found.checkpoint.manifest().journal.clone())
    });
    let mut journal = run.journal(&mark).ok()?;
    for step in start + 1..=step {
        journal.append(&format!("{{\"step\":{step}}}")).ok()?;
    }
    let mark = journal.mark().ok()?;
    let saved = State::at(step).snapshot(step, mark, |snapshot| checkpoints.save(&snapshot)).ok();
    // What no checkpoint knows yet.
    let _ = journal.append("{}");
    saved
}

#[test]
fn saved_step_survives_a_power_failure() {
    // The first checkpoint of a run, whose file of events is new too, and a later one.
    for before in [&[][..], &[10, 20]] {
        let (_temp, base) = run_with(&[]);
        for &step in before {
            train(&base, FaultyDisk::sound(), step).unwrap();
        }
        let last = before.last().copied().unwrap_or(0);
        let act = |folder: &Path, disk| train(folder, disk, 30);
        survives_every_failure(Some(&base), act, |folder, saved, case| {
            let found = newest(&folder.join("checkpoints")).unwrap_or_else(|error| panic!("{case}: {error}"));
            let step = found.as_ref().map_or(0, |found| found.checkpoint.step());
            assert!(step == 30 || step == last && saved.is_none(), "{case}: step {step}");
            let mark = found.map_or_else(Mark::start, |found| {
                check(&found.checkpoint);
                assert!(found.skipped.is_empty(), "{case}: {:?}", found.skipped);
                found.checkpoint.manifest().journal.clone()
            });
            let run = open(folder).unwrap();
            drop(run.journal(&mark).unwrap_or_else(|error| panic!("{case}: {error}")));
            drop(run);
            assert_eq!(fs::read_to_string(folder.join("events.jsonl")).unwrap(), lines(step), "{case}");
            // And the run goes on as if nothing had been.
            train(folder, FaultyDisk::sound(), 40).unwrap();
            let events = fs::read_to_string(folder.join("events.jsonl")).unwrap();
            assert_eq!(events, lines(40) + "{}\n", "{case}");
        });
    }
}

/// The end of a run whose last step was saved before, also where it is the only checkpoint.
fn replace(folder: &Path, disk: Arc<dyn Disk>) -> Option<Committed> {
    let run = Run::open_on(folder, disk).ok()?;
    let mut checkpoints = run.checkpoints(2);
    let writer = checkpoints.begin_replacement(20).ok()?;
    let files = vec![writer.parts().write("end.json", b"{}").ok()?];
    writer.commit(identity(), Mark::start(), files).ok()
}

#[track_caller]
fn has_step_20(folder: &Path, replaced: Option<&Committed>, case: &str) {
    drop(open(folder).unwrap_or_else(|error| panic!("{case}: {error}")));
    let found = newest(&folder.join("checkpoints")).unwrap_or_else(|error| panic!("{case}: {error}"));
    let found = found.unwrap_or_else(|| panic!("{case}: no checkpoint"));
    assert_eq!((found.checkpoint.step(), found.skipped.len()), (20, 0), "{case}");
    assert!(replaced.is_none() || found.checkpoint.bytes("end.json").is_ok(), "{case}");
}

#[test]
fn replaced_checkpoint_survives_a_power_failure() {
    for before in [&[10, 20][..], &[20]] {
        let (_temp, base) = run_with(before);
        survives_every_failure(Some(&base), replace, has_step_20);
    }
}

/// A process killed between the two renames, and then the power fails while the next one puts the checkpoint back.
#[test]
fn putting_back_survives_a_power_failure() {
    let (temp, base) = run_with(&[20]);
    let killed = temp.path().join("killed");
    for at in 0.. {
        copy(&base, &killed);
        assert!(replace(&killed, Arc::new(FaultyDisk::new(Fault::Killed, at))).is_none());
        if !place(&killed, 20).exists() {
            break;
        }
    }
    assert_eq!(names(&killed.join("checkpoints")).len(), 2);
    let act = |folder: &Path, disk| Run::open_on(folder, disk).ok().map(drop);
    survives_every_failure(Some(&killed), act, |folder, _, case| has_step_20(folder, None, case));
}

/// A damaged checkpoint that gives way to a new one of its step.
#[test]
fn older_checkpoint_survives_while_a_damaged_one_is_replaced() {
    let (_temp, base) = run_with(&[10, 20]);
    fs::write(place(&base, 20).join("rank-0.json"), "").unwrap();
    let act = |folder: &Path, disk| {
        let run = Run::open_on(folder, disk).ok()?;
        save(&mut run.checkpoints(2), 20).ok()
    };
    survives_every_failure(Some(&base), act, |folder, saved, case| {
        drop(open(folder).unwrap());
        let found =
            newest(&folder.join("checkpoints")).unwrap_or_else(|error| panic!("{case}: {error}")).unwrap();
        check(&found.checkpoint);
        assert_eq!(
            found.checkpoint.step(),
            if saved.is_some() { 20 } else { found.checkpoint.step() },
            "{case}"
        );
        match save(&mut open(folder).unwrap().checkpoints(2), 20) {
            Err(RunError::CheckpointExists { .. }) => assert_eq!(found.checkpoint.step(), 20, "{case}"),
            saved => drop(saved.unwrap_or_else(|error| panic!("{case}: {error}"))),
        }
    });
}

#[test]
fn run_that_was_begun_survives_a_power_failure() {
    let act = |folder: &Path, disk| Run::create_on(folder, disk).ok().map(drop);
    survives_every_failure(None, act, |folder, begun, case| {
        let opened = open(folder);
        assert!(begun.is_none() || opened.is_ok(), "{case}");
        drop(
            opened
                .or_else(|_| Run::create_on(folder, FaultyDisk::sound()))
                .unwrap_or_else(|error| panic!("{case}: {error}")),
        );
    });
}

#[test]
fn file_is_old_or_new_after_a_power_failure() {
    let (_temp, base) = run_with(&[]);
    fs::write(base.join("recipe.toml"), "old").unwrap();
    let act = |folder: &Path, disk| Run::open_on(folder, disk).ok()?.write(RunFile::Recipe, b"new!").ok();
    survives_every_failure(Some(&base), act, |folder, written, case| {
        let text = fs::read_to_string(folder.join("recipe.toml")).unwrap();
        assert!(text == "new!" || text == "old" && written.is_none(), "{case}: {text:?}");
        drop(open(folder).unwrap());
        let left = ["calmix.lock", "checkpoints", "predictions", "recipe.toml", "run.json"];
        assert_eq!(names(folder), left, "{case}");
    });
}
