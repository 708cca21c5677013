//! A disk that is full, cannot synchronise, or a process that is killed, at every call of the write path.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use calmix_io::confined_path::ConfinedPath;
use calmix_io::disk::{Disk, RealDisk};
use calmix_io::error::FileError;
use calmix_io::transient::BackOff;
use calmix_run::checkpoint::{CheckpointContents, Committed};
use calmix_run::error::RunError;
use calmix_run::run::{Mark, Run, RunFile};
use calmix_testkit::faulty_disk::{Fault, FaultyDisk};

use super::state::{copy, found, identity, names, place, run_with, save, scratches};

/// Every call of a save that also removes an old checkpoint.
#[rustfmt::skip]
const CALLS: [&str; 21] = [
    "create folder",
    // margins, model, two small files, manifest
    "create", "write", "sync",
    "create", "write", "sync",
    "create", "write", "sync",
    "create", "write", "sync",
    "create", "write", "sync",
    // it becomes visible
    "sync folder", "rename", "sync folder",
    // the oldest goes
    "rename", "remove folder",
];
/// The call after which a save is good whatever follows.
const LAST: usize = 18;

#[test]
fn files_are_synchronised_before_the_rename() {
    let (_temp, folder, base) = base();
    copy(&base, &folder);
    let (disk, saved) = save_on(&folder, Fault::Killed, usize::MAX);
    assert_eq!(saved.unwrap().removed, [10]);
    assert_eq!(disk.calls(), CALLS);
}

/// A filer that is away for a while, from any call on: the save waits and succeeds, and what it wrote is right. What is
/// left to do behind the last rename is not worth waiting for.
#[test]
fn disk_outage_is_waited_out() {
    let (_temp, folder, base) = base();
    for (at, calls) in (0..=LAST).flat_map(|at| [(at, 1), (at, 7)]) {
        copy(&base, &folder);
        let disk =
            Arc::new(FaultyDisk::new(Fault::Once(ErrorKind::StaleNetworkFileHandle), at).until(at + calls));
        let run = Run::open_on(&folder, disk.clone()).unwrap();
        save(&mut run.checkpoints(2), 30).unwrap_or_else(|error| panic!("{error}, at call {at}"));
        assert_eq!(found(&folder).checkpoint.step(), 30, "{} at call {at}", disk.struck());
        assert!(scratches(&folder) <= 1, "at call {at}");
        run.write(RunFile::Recipe, b"seed = 1\n").unwrap();
    }
}

/// A disk whose first rename is done, but whose answer is lost: the second finds nothing to rename.
#[derive(Debug, Default)]
struct LostAnswer(AtomicBool);

impl Disk for LostAnswer {
    fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> io::Result<()> {
        RealDisk.rename(from, to)?;
        if self.0.swap(true, Ordering::Relaxed) { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
    }

    fn wait(&self, _: Duration, _: &FileError, _: &BackOff) {}
}

#[test]
fn rename_whose_answer_is_lost_has_succeeded() {
    let (_temp, folder) = run_with(&[10, 20]);
    let run = Run::open_on(&folder, Arc::new(LostAnswer::default())).unwrap();
    save(&mut run.checkpoints(2), 30).unwrap();
    assert_eq!(found(&folder).checkpoint.step(), 30);
}

#[test]
fn foreign_folder_is_not_taken_for_the_checkpoint() {
    let (_temp, folder) = run_with(&[10]);
    let run = Run::open(&folder).unwrap();
    let mut checkpoints = run.checkpoints(2);
    let writer = checkpoints.begin(20).unwrap();
    let files = vec![writer.parts().write("part", b"x").unwrap()];
    fs::create_dir(place(&folder, 20)).unwrap();
    fs::write(place(&folder, 20).join("notes"), "").unwrap();
    writer.commit(identity(), Mark::start(), files).unwrap_err();
    assert_eq!(names(&place(&folder, 20)), ["notes"]);
}

/// After a failed synchronisation the system may have dropped the lines: they are written again.
#[test]
fn unsynchronised_lines_are_written_again() {
    let (_temp, folder) = run_with(&[]);
    let lines = |calls: &[&'static str]| calls.iter().filter(|call| **call == "write").count();
    // Cut at the start, two lines, and the synchronisation, which fails.
    let disk = Arc::new(FaultyDisk::new(Fault::Once(ErrorKind::TimedOut), 4));
    let run = Run::open_on(&folder, disk.clone()).unwrap();
    let mut journal = run.journal(&Mark::start()).unwrap();
    journal.append("{}").unwrap();
    journal.append("[]").unwrap();
    let mark = journal.mark().unwrap();
    assert_eq!(disk.struck(), "sync");
    assert_eq!((lines(&disk.calls()), disk.calls().last()), (3, Some(&"sync")), "{:?}", disk.calls());
    journal.append("1").unwrap();
    assert_eq!(fs::read_to_string(folder.join("events.jsonl")).unwrap(), "{}\n[]\n1\n");
    assert_eq!(mark.length, 6);
}

/// D1, D2 and K2 of the table of faults.
#[test]
fn any_failing_call_leaves_the_last_checkpoint() {
    let faults = [
        Fault::Once(ErrorKind::StorageFull),
        Fault::Once(ErrorKind::Other),
        Fault::Killed,
        Fault::KilledWithin,
    ];
    let (_temp, folder, base) = base();
    for (fault, at) in faults.into_iter().flat_map(|fault| (0..CALLS.len()).map(move |at| (fault, at))) {
        copy(&base, &folder);
        let (disk, saved) = save_on(&folder, fault, at);
        let case = format!("{fault:?} at call {at}, {}", disk.struck());

        let renamed = disk.calls()[..at].contains(&"rename");
        assert_eq!(found(&folder).checkpoint.step(), if renamed { 30 } else { 20 }, "{case}");
        assert!(found(&folder).skipped.is_empty(), "{case}");
        assert_eq!(place(&folder, 30).exists(), renamed, "{case}: seen though not declared whole");
        assert!(scratches(&folder) <= 1, "{case}");
        if matches!(fault, Fault::Once(_)) && saved.is_err() {
            // Training may go on, and what was half written must not take the space.
            assert_eq!(scratches(&folder), 0, "{case}");
        }
        match saved {
            // Only after the new one is durable may something fail and the save be good.
            Ok(Committed { cleanup_error, .. }) => assert!(cleanup_error.is_some() && at > LAST, "{case}"),
            Err(error) => {
                assert!(error.to_string().contains("step-000000030") || at == LAST, "{case}: {error}");
            }
        }

        // The next start finds no trace of it, and the same step or the next can be made.
        let run = Run::open_on(&folder, FaultyDisk::sound()).unwrap();
        assert_eq!(scratches(&folder), 0, "{case}");
        let mut checkpoints = run.checkpoints(2);
        match save(&mut checkpoints, 30) {
            Err(RunError::CheckpointExists { .. }) => assert!(renamed, "{case}"),
            saved => _ = saved.unwrap(),
        }
        assert_eq!(
            save(&mut checkpoints, 40).unwrap().cleanup_error.map(|error| error.to_string()),
            None,
            "{case}"
        );
        assert_eq!(found(&folder).checkpoint.step(), 40, "{case}");
        assert_eq!(names(&folder.join("checkpoints")), ["step-000000030", "step-000000040"], "{case}");
    }
}

/// The same for files that are written alone, and for the beginning of a run.
#[test]
fn a_file_is_old_or_new_whatever_call_fails() {
    for fault in [Fault::Once(ErrorKind::StorageFull), Fault::Killed, Fault::KilledWithin] {
        for at in 0..5 {
            let temp = tempfile::tempdir().unwrap();
            let run = Run::create_on(temp.path(), FaultyDisk::sound()).unwrap();
            run.write(RunFile::Recipe, b"old").unwrap();
            drop(run);
            let disk = Arc::new(FaultyDisk::new(fault, at));
            let run = Run::open_on(temp.path(), disk.clone()).unwrap();
            assert!(run.write(RunFile::Recipe, b"new!").is_err());
            drop(run);
            let text = fs::read(temp.path().join("recipe.toml")).unwrap();
            let renamed = disk.calls()[..at].contains(&"rename");
            assert_eq!(text, if renamed { b"new!".as_slice() } else { b"old" }, "{fault:?} at {at}");
            drop(Run::open(temp.path()).unwrap());
            let left = ["calmix.lock", "checkpoints", "predictions", "recipe.toml", "run.json"];
            assert_eq!(names(temp.path()), left, "{fault:?} at {at}");
        }
        for at in 0..8 {
            let temp = tempfile::tempdir().unwrap();
            let disk = Arc::new(FaultyDisk::new(fault, at));
            assert!(Run::create_on(temp.path(), disk.clone()).is_err(), "{fault:?} at {at}");
            let whole = disk.calls()[..at].contains(&"rename");
            let run =
                if whole { Run::open(temp.path()) } else { Run::create_on(temp.path(), FaultyDisk::sound()) };
            drop(run.unwrap());
            let left = ["calmix.lock", "checkpoints", "predictions", "run.json"];
            assert_eq!(names(temp.path()), left, "{fault:?} at {at}");
        }
    }
}

/// A line that could not be written leaves nothing behind, and the next one follows the last whole one.
#[test]
fn journal_line_is_written_whole_or_not_at_all() {
    // The calls: the folder, the cut, then a line each; the line that fails is cut off again.
    for (fault, at, rest) in [
        (Fault::Once(ErrorKind::StorageFull), 3, "one\nthree\n"),
        (Fault::KilledWithin, 3, "one\ntw"),
        (Fault::Killed, 4, "one\ntwo\n"),
    ] {
        let temp = tempfile::tempdir().unwrap();
        drop(Run::create_on(temp.path(), FaultyDisk::sound()).unwrap());
        let disk = Arc::new(FaultyDisk::new(fault, at));
        let run = Run::open_on(temp.path(), disk).unwrap();
        let mut journal = run.journal(&Mark::start()).unwrap();
        journal.append("one").unwrap();
        let two = journal.append("two");
        if matches!(fault, Fault::Once(_)) {
            assert!(two.is_err());
            assert_eq!(fs::read_to_string(temp.path().join("events.jsonl")).unwrap(), "one\n");
        }
        let _ = journal.append("three");
        drop((run, journal));
        assert_eq!(fs::read_to_string(temp.path().join("events.jsonl")).unwrap(), rest);
    }
}

#[test]
fn invalid_parts_are_refused_and_leave_nothing() {
    let (_temp, folder) = run_with(&[10, 20]);
    let run = Run::open(&folder).unwrap();
    let mut checkpoints = run.checkpoints(2);
    for name in ["", "../a", "MANIFEST", "a/b", ".hidden"] {
        let parts = vec![(name, b"x".as_slice())];
        let snapshot = CheckpointContents { step: 30, identity: identity(), journal: Mark::start(), parts };
        checkpoints.save(&snapshot).unwrap_err();
    }
    let parts = vec![("a", b"x".as_slice()), ("a", b"y")];
    let snapshot = CheckpointContents { step: 30, identity: identity(), journal: Mark::start(), parts };
    checkpoints.save(&snapshot).unwrap_err();
    assert_eq!(names(&folder.join("checkpoints")), ["step-000000010", "step-000000020"]);
}

/// A run with checkpoints at 10 and 20, to be copied rather than made again each time.
fn base() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let (temp, base) = run_with(&[10, 20]);
    let folder = temp.path().join("copy");
    (temp, folder, base)
}

fn save_on(folder: &Path, fault: Fault, at: usize) -> (Arc<FaultyDisk>, Result<Committed, RunError>) {
    let disk = Arc::new(FaultyDisk::new(fault, at));
    let run = Run::open_on(folder, disk.clone()).unwrap();
    let saved = save(&mut run.checkpoints(2), 30);
    (disk, saved)
}
