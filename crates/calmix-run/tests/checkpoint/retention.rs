//! Which checkpoints are kept, found and replaced, and in which format.

use std::fs::{self, File};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use calmix_io::disk::RealDisk;
use calmix_io::error::FileProblem;
use calmix_run::checkpoint::{CheckpointFiles, Checkpoints, newest};
use calmix_run::error::RunError;
use calmix_run::run::{Mark, Run};
use calmix_testkit::faulty_disk::{Fault, FaultyDisk};

use super::state::{check, found, identity, names, place, run_with, save};

#[test]
fn only_checkpoints_that_can_be_used_count_as_kept() {
    let (_temp, folder) = run_with(&[10, 20, 30]);
    fs::write(place(&folder, 20).join("rank-0.json"), "").unwrap();
    let run = Run::open(&folder).unwrap();
    let mut checkpoints = run.checkpoints(0);
    // 40 and 30 are whole: 20, which is not, and 10 may go.
    assert_eq!(save(&mut checkpoints, 40).unwrap().removed, [20, 10]);
    fs::write(place(&folder, 40).join("rank-0.json"), "").unwrap();
    drop((run, checkpoints));

    // In a new process, which has to look: 40 is damaged, so 30 must stay.
    let run = Run::open(&folder).unwrap();
    assert!(save(&mut run.checkpoints(2), 50).unwrap().removed.is_empty());
    assert_eq!(found(&folder).checkpoint.step(), 50);
    fs::remove_dir_all(place(&folder, 50)).unwrap();
    assert_eq!(found(&folder).checkpoint.step(), 30);
}

#[test]
fn damaged_checkpoint_is_replaced_and_a_whole_one_never() {
    let (_temp, folder) = run_with(&[10, 20]);
    fs::write(place(&folder, 20).join("rank-0.json"), "").unwrap();
    let run = Run::open(&folder).unwrap();
    let mut checkpoints = run.checkpoints(2);
    assert_eq!(found(&folder).checkpoint.step(), 10);
    save(&mut checkpoints, 20).unwrap();
    let hash = found(&folder).checkpoint.hash().to_owned();
    assert!(matches!(save(&mut checkpoints, 20), Err(RunError::CheckpointExists { .. })));
    assert_eq!(found(&folder).checkpoint.hash(), hash);
}

/// The end of a run whose last step was saved before: a kill at any call leaves a checkpoint of that step, also where it is
/// the only one.
#[test]
fn kill_while_the_last_checkpoint_is_replaced_keeps_its_step() {
    for before in [&[10, 20][..], &[20]] {
        replace_the_last_of(before);
    }
}

fn replace_the_last_of(before: &[u64]) {
    let mut seen = std::collections::BTreeSet::new();
    for at in 0.. {
        let (_temp, folder) = run_with(before);
        let disk = Arc::new(FaultyDisk::new(Fault::Killed, at));
        let run = Run::open_on(&folder, disk.clone()).unwrap();
        let mut checkpoints = run.checkpoints(2);
        let end = |checkpoints: &mut Checkpoints| {
            let writer = checkpoints.begin_replacement(20)?;
            let files = vec![writer.parts().write("end.json", b"{}")?];
            writer.commit(identity(), Mark::start(), files)
        };
        let outcome = end(&mut checkpoints);
        drop((run, checkpoints));
        drop(Run::open(&folder).unwrap());
        let found = newest(&folder.join("checkpoints")).unwrap().unwrap();
        assert!(found.skipped.is_empty(), "killed at call {at}");
        let is_end = found.checkpoint.bytes("end.json").is_ok();
        seen.insert((found.checkpoint.step(), is_end));
        if outcome.is_ok() {
            assert!(is_end && names(&folder.join("checkpoints")).len() == before.len());
            break;
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(20, false), (20, true)]);
}

/// Only two whole checkpoints are a replacement that was interrupted.
#[test]
fn damaged_half_of_a_replacement_is_not_put_back() {
    for damaged in 0..2 {
        let (_temp, folder) = run_with(&[10, 20]);
        let checkpoints = folder.join("checkpoints");
        let scratch = [0, 1].map(|serial| checkpoints.join(format!(".step-000000020.tmp-1-{serial}")));
        fs::create_dir(&scratch[1]).unwrap();
        for name in names(&place(&folder, 20)) {
            fs::copy(place(&folder, 20).join(&name), scratch[1].join(name)).unwrap();
        }
        fs::rename(place(&folder, 20), &scratch[0]).unwrap();
        fs::write(scratch[damaged].join("rank-0.json"), "").unwrap();
        drop(Run::open(&folder).unwrap());
        assert_eq!(names(&checkpoints), ["step-000000010"], "{damaged}");
    }
}

#[test]
fn part_is_read_up_to_its_limit() {
    let (_temp, folder) = run_with(&[10]);
    let checkpoint = found(&folder).checkpoint;
    let whole = checkpoint.bytes("rank-0.json").unwrap();
    let length = whole.len() as u64;
    assert_eq!(checkpoint.bytes_up_to("rank-0.json", length).unwrap(), whole);
    assert_eq!(checkpoint.bytes_up_to("rank-0.json", length + 1).unwrap(), whole);
    let error = checkpoint.bytes_up_to("rank-0.json", length - 1).unwrap_err();
    assert!(matches!(error.problem, FileProblem::Limit(_)), "{error}");
}

#[test]
fn foreign_files_are_left_alone() {
    let (_temp, folder) = run_with(&[10, 20]);
    let others = [
        "notes.txt",
        "step-99",
        "step-000000005-best",
        ".step-000000005.tmp-mine",
        "step-000000007~",
        ".notes.tmp-1-2",
    ];
    for name in others {
        let other = folder.join("checkpoints").join(name);
        fs::create_dir(&other).unwrap();
        fs::write(other.join("precious"), "").unwrap();
    }
    for name in [".step-000000009.tmp-1-0", ".step-000000011.tmp-99-3"] {
        fs::create_dir(folder.join("checkpoints").join(name)).unwrap();
    }
    let run = Run::open(&folder).unwrap();
    assert!(save(&mut run.checkpoints(2), 30).unwrap().cleanup_error.is_none());
    assert!(found(&folder).skipped.is_empty());
    let mut expected = [&others[..], &["step-000000020", "step-000000030"]].concat();
    expected.sort_unstable();
    assert_eq!(names(&folder.join("checkpoints")), expected);
}

/// Q1: the times of files say that the oldest is the newest.
#[test]
fn timestamps_are_ignored() {
    let (_temp, folder) = run_with(&[9, 10, 1_000_000_000]);
    let year = Duration::from_hours(8_766);
    for (step, time) in [
        (9, SystemTime::now() + 10 * year),
        (10, SystemTime::UNIX_EPOCH),
        (1_000_000_000, SystemTime::UNIX_EPOCH + year),
    ] {
        let place = place(&folder, step);
        for name in names(&place) {
            File::options().write(true).open(place.join(name)).unwrap().set_modified(time).unwrap();
        }
        File::open(place).unwrap().set_modified(time).unwrap();
    }
    assert_eq!(found(&folder).checkpoint.step(), 1_000_000_000);
    let run = Run::open(&folder).unwrap();
    assert_eq!(save(&mut run.checkpoints(2), 1_000_000_001).unwrap().removed, [10, 9]);
}

#[test]
fn several_processes_write_parts_and_one_commits() {
    let (_temp, folder) = run_with(&[10]);
    let run = Run::open(&folder).unwrap();
    let mut checkpoints = run.checkpoints(2);

    // A part that was written but not listed would be lost, and so would one that is listed twice.
    for listed in [0, 2] {
        let writer = checkpoints.begin(20).unwrap();
        let part = writer.parts().write("rank-0.json", b"0").unwrap();
        writer.commit(identity(), Mark::start(), vec![part; listed]).unwrap_err();
        assert_eq!(names(&folder.join("checkpoints")), ["step-000000010"]);
    }

    let writer = checkpoints.begin(20).unwrap();
    let there = writer.parts().folder().to_owned();
    let others = [3, 1, 2].map(|rank| {
        let parts = CheckpointFiles::new(&there, Arc::new(RealDisk));
        std::thread::spawn(move || parts.write(&format!("rank-{rank}.json"), &[rank]))
    });
    let mut files: Vec<_> = others.map(|other| other.join().unwrap().unwrap()).into();
    files.push(writer.parts().write("rank-0.json", b"0").unwrap());
    let committed = writer.commit(identity(), Mark::start(), files).unwrap();

    let found = newest(checkpoints.folder()).unwrap().unwrap().checkpoint;
    assert_eq!((found.step(), found.hash()), (20, &*committed.hash));
    for rank in 1..=3 {
        assert_eq!(found.bytes(&format!("rank-{rank}.json")).unwrap(), [rank]);
    }
    assert!(found.bytes("rank-4.json").is_err());
}

/// G3: the bytes of the format, which later versions have to read or to refuse by its number.
#[test]
fn the_format_is_pinned() {
    let (_temp, folder) = run_with(&[]);
    let run = Run::open(&folder).unwrap();
    let mut checkpoints = run.checkpoints(2);
    let writer = checkpoints.begin(7).unwrap();
    let files = vec![writer.parts().write("model.safetensors", b"tensors").unwrap()];
    writer.commit(identity(), Mark::start(), files).unwrap();
    let place = place(&folder, 7);
    let json = concat!(
        r#"{"format":3,"step":7,"#,
        r#""identity":{"recipe":"c0ffee","dataset":"5eed","split":"5917","groups":1,"shards":4},"#,
        r#""journal":{"length":0,"#,
        r#""blake3":"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},"#,
        r#""files":[{"name":"model.safetensors","length":7,"blake3":"MODEL"}]}"#,
    );
    let json = json.replace("MODEL", &blake3::hash(b"tensors").to_hex());
    let manifest = |json: &str| format!("{json}\n{}\n", blake3::hash(json.as_bytes()).to_hex());
    assert_eq!(fs::read_to_string(place.join("MANIFEST")).unwrap(), manifest(&json));

    // The same JSON with a space more is damage. Another version's checkpoint is none: an older one must not replace it.
    drop(run);
    let spaced = manifest(&json.replace("\"step\":7", "\"step\": 7"));
    fs::write(place.join("MANIFEST"), spaced).unwrap();
    assert!(matches!(newest(&folder.join("checkpoints")), Err(RunError::NoneUsable { .. })));
    for (other, text) in [(2, "\"format\":2"), (4, "\"format\":4,\"more\":[]")] {
        fs::write(place.join("MANIFEST"), manifest(&json.replace("\"format\":3", text))).unwrap();
        let error = newest(&folder.join("checkpoints")).unwrap_err();
        assert!(matches!(error, RunError::OtherFormat { format, .. } if format == other), "{error}");
        let message = format!(
            "MANIFEST: another version of calmix wrote this checkpoint, in format {other}, but this version reads \
             format 3; resume with the version that wrote it, or start a new run in another folder"
        );
        assert!(error.to_string().ends_with(&message), "{error}");
    }
}

/// A forged manifest with a valid hash.
#[test]
fn forged_manifests_are_refused() {
    let (_temp, folder) = run_with(&[10, 20]);
    let path = place(&folder, 20).join("MANIFEST");
    let text = fs::read_to_string(&path).unwrap();
    let json = text.lines().next().unwrap();
    for (old, new) in [
        ("rank-0.json", "../../../run.json"),
        ("rank-0.json", "/etc/passwd"),
        ("rank-0.json", "MANIFEST"),
        ("rank-1.json", "rank-0.json"),
        ("\"length\":", "\"length\":1844674407370955161"),
        ("\"step\":20", "\"step\":20,\"step\":20"),
        ("\"shards\":4", "\"shards\":-4"),
        ("{", "["),
    ] {
        let json = json.replace(old, new);
        fs::write(&path, format!("{json}\n{}\n", blake3::hash(json.as_bytes()).to_hex())).unwrap();
        let found = found(&folder);
        assert_eq!(found.checkpoint.step(), 10, "{new}");
        assert_eq!(found.skipped.len(), 1, "{new}");
    }

    // A part outside, with its true length and hash.
    let outside = "../step-000000010/rank-0.json";
    let bytes = fs::read(place(&folder, 20).join(outside)).unwrap();
    let length = bytes.len();
    let hash = blake3::hash(&bytes).to_hex();
    let entry = format!(r#""files":[{{"name":"{outside}","length":{length},"blake3":"{hash}"}},"#);
    let json = json.replace("\"files\":[", &entry);
    fs::write(&path, format!("{json}\n{}\n", blake3::hash(json.as_bytes()).to_hex())).unwrap();
    assert!(found(&folder).skipped[0].reason.to_string().contains("is not a valid name for a part"));

    fs::write(&path, vec![b' '; 5 << 20]).unwrap();
    check(&found(&folder).checkpoint);
    assert!(found(&folder).skipped[0].reason.to_string().contains("more than 4194304"));
}
