//! Torn, rotten and swapped files: every one is found, named, and the checkpoint before is used.

use std::fs::{self, File};
use std::path::Path;

use calmix_run::checkpoint::newest;
use calmix_run::error::RunError;
use calmix_run::run::Run;

use super::state::{found, names, place, run_with, save};

const PAGE: usize = 4_096;

/// What is passed over when the checkpoint of step 20 is damaged in `file`.
fn passed_over(run: &Path, file: &Path, case: &str) -> String {
    let found = newest(&run.join("checkpoints")).unwrap().unwrap();
    assert_eq!(found.checkpoint.step(), 10, "{case}");
    let [skipped] = found.skipped.as_slice() else { unreachable!("{case}: {:?}", found.skipped) };
    assert_eq!((skipped.step, &*skipped.reason.path), (20, file), "{case}");
    skipped.reason.to_string()
}

/// T1: every file, cut at every byte, or around every sector of the large one.
#[test]
fn a_torn_file_is_found_at_every_length() {
    let (_temp, run) = run_with(&[10, 20]);
    let folder = place(&run, 20);
    for name in names(&folder) {
        let path = folder.join(&name);
        let whole = fs::read(&path).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let around = |length: usize| (length + 1) % 512 <= 2;
        let lengths = (0..whole.len()).rev().filter(|&length| whole.len() <= 64 << 10 || around(length));
        for length in lengths {
            file.set_len(length as u64).unwrap();
            let reason = passed_over(&run, &path, &format!("{name} cut at {length}"));
            let place =
                if name == "MANIFEST" { format!("({length} bytes)") } else { format!("byte {length}:") };
            assert!(reason.contains(&place), "{reason}");
        }
        fs::write(&path, whole).unwrap();
        assert_eq!(found(&run).checkpoint.step(), 20);
    }
}

/// T2: what a disk that loses or turns bits makes of a file.
#[test]
fn zeros_and_flipped_bits_are_found_on_every_page() {
    let (_temp, run) = run_with(&[10, 20]);
    let folder = place(&run, 20);
    let mut cases = 0;
    for name in names(&folder) {
        let path = folder.join(&name);
        let whole = fs::read(&path).unwrap();
        for page in (0..whole.len()).step_by(PAGE) {
            let mut zeros = whole.clone();
            zeros[page..].fill(0);
            fs::write(&path, zeros).unwrap();
            passed_over(&run, &path, &format!("{name}, zeros from {page}"));

            let mut turned = whole.clone();
            let bit = page * 8 + (page * 7_919 + 12_345) % (8 * (whole.len() - page).min(PAGE));
            turned[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, turned).unwrap();
            passed_over(&run, &path, &format!("{name}, bit {bit}"));
            cases += 2;
        }
        let longer = [&*whole, b"\n"].concat();
        fs::write(&path, longer).unwrap();
        passed_over(&run, &path, "a byte more");
        fs::remove_file(&path).unwrap();
        passed_over(&run, &path, "missing");
        fs::create_dir(&path).unwrap();
        passed_over(&run, &path, "a folder in its place");
        fs::remove_dir(&path).unwrap();
        fs::write(&path, whole).unwrap();
        assert_eq!(found(&run).checkpoint.step(), 20);
    }
    assert!(cases > 40, "{cases}");
}

/// Every byte of a manifest: it vouches for the others, and nothing else vouches for it.
#[test]
fn every_byte_of_the_manifest_counts() {
    let (_temp, run) = run_with(&[10, 20]);
    let path = place(&run, 20).join("MANIFEST");
    let whole = fs::read(&path).unwrap();
    for byte in 0..whole.len() {
        let mut turned = whole.clone();
        turned[byte] ^= 1 << (byte % 8);
        fs::write(&path, turned).unwrap();
        passed_over(&run, &path, &format!("byte {byte}"));
    }
}

#[test]
fn misplaced_files_are_found() {
    let (_temp, run) = run_with(&[10, 20]);
    let other = place(&run, 10);
    let folder = place(&run, 20);
    for name in names(&folder) {
        let path = folder.join(&name);
        let whole = fs::read(&path).unwrap();
        fs::copy(other.join(&name), &path).unwrap();
        passed_over(&run, &path, &format!("{name} of another step"));
        fs::write(&path, whole).unwrap();
    }

    // The files of two processes, of one length, the wrong way round.
    let [a, b] = ["rank-0.json", "rank-1.json"].map(|name| folder.join(name));
    let was_a = fs::read(&a).unwrap();
    let was_b = fs::read(&b).unwrap();
    assert_eq!(was_a.len(), was_b.len());
    fs::write(&a, &was_b).unwrap();
    fs::write(&b, &was_a).unwrap();
    passed_over(&run, &a, "swapped");
    fs::write(&a, &was_a).unwrap();
    fs::write(&b, &was_b).unwrap();

    let extra = folder.join("extra");
    fs::write(&extra, "").unwrap();
    passed_over(&run, &extra, "one more");
    fs::remove_file(extra).unwrap();

    {
        let elsewhere = run.join("elsewhere");
        fs::rename(&a, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &a).unwrap();
        assert!(passed_over(&run, &a, "a link to the right bytes").contains("a symbolic link"));
        fs::remove_file(&a).unwrap();
        fs::rename(&elsewhere, &a).unwrap();
    }
    assert_eq!(found(&run).checkpoint.step(), 20);

    // A whole checkpoint under the name of another step.
    let moved = place(&run, 30);
    fs::rename(&folder, &moved).unwrap();
    let found = found(&run);
    assert_eq!((found.checkpoint.step(), found.skipped[0].step), (10, 30));
    assert!(
        found.skipped[0].reason.to_string().contains("the manifest of step 20 is in the folder of step 30")
    );
}

/// T3: nothing to continue from, which the user has to know.
#[test]
fn all_damaged_is_an_error_that_changes_nothing() {
    let (_temp, run) = run_with(&[10, 20, 30]);
    for (step, name) in [(10, "MANIFEST"), (20, "rank-0.json"), (30, "model.safetensors")] {
        File::options().write(true).open(place(&run, step).join(name)).unwrap().set_len(5).unwrap();
    }
    let before = names(&run.join("checkpoints"));
    let error = newest(&run.join("checkpoints")).unwrap_err();
    let RunError::NoneUsable { skipped, .. } = &error else { unreachable!("{error}") };
    assert_eq!(skipped.iter().map(|bad| bad.step).collect::<Vec<_>>(), [30, 20, 10]);
    for part in ["model.safetensors, byte 5", "rank-0.json, byte 5", "step-000000010", "restore a copy"] {
        assert!(error.to_string().contains(part), "{error}");
    }

    // Not even a program that goes on regardless replaces one of them.
    let held = Run::open(&run).unwrap();
    let mut checkpoints = held.checkpoints(2);
    assert!(matches!(save(&mut checkpoints, 20), Err(RunError::NoneUsable { .. })));
    assert_eq!(names(&run.join("checkpoints")), before);
    assert!(matches!(newest(&run.join("checkpoints")), Err(RunError::NoneUsable { .. })));
}

/// EIO, EACCES, EMFILE, ESTALE: the system cannot read what may be whole. Here it has no file handles left.
#[test]
fn outage_is_waited_out_and_is_not_damage() {
    use std::time::{Duration, Instant};

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let (_temp, run) = run_with(&[10, 20]);
    let folder = run.join("checkpoints");
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..before }).unwrap();
    let mut taken: Vec<File> = Vec::new();
    while let Ok(file) = File::open(&folder) {
        taken.push(file);
    }
    // Back after half a second: nothing is passed over.
    let waiting = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        drop(taken);
    });
    let begun = Instant::now();
    let found = newest(&folder).unwrap().unwrap();
    assert_eq!((found.checkpoint.step(), found.skipped.len()), (20, 0));
    assert!(begun.elapsed() >= Duration::from_millis(300), "there was no outage");
    waiting.join().unwrap();

    // For longer: neither damaged nor passed over.
    let mut taken: Vec<File> = Vec::new();
    while let Ok(file) = File::open(&folder) {
        taken.push(file);
    }
    let error = newest(&folder).unwrap_err();
    drop(taken);
    setrlimit(Resource::Nofile, before).unwrap();
    assert!(matches!(error, RunError::Unreadable(_)), "{error}");
    assert!(error.to_string().contains("check that the disk is mounted"), "{error}");
}
