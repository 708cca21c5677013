//! `prepare --to`, `export`, `calibrate`, `predict` and `certify`, killed at calls that change files: the next command that succeeds
//! leaves no trace of the kill, and the result of an uninterrupted command.
#![cfg(target_os = "linux")]

use crate::planted;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::planted::{write_labels, write_npy};
use calmix_testkit::tier;
use tempfile::TempDir;

/// The calls that change files.
const CALLS: [&str; 11] = [
    "mkdir",
    "mkdirat",
    "rename",
    "renameat",
    "fsync",
    "unlink",
    "unlinkat",
    "rmdir",
    "ftruncate",
    "write",
    "flock",
];

/// The kills of each command: five, or `CALMIX_KILLS`, or twenty in the exhaustive tier.
fn kills() -> usize {
    tier::number("CALMIX_KILLS", 5, 20) as usize
}

/// A call, and its number among its like.
type Place = (&'static str, usize);

/// A folder with vectors, and one for temporary files.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        write_npy(&folder.path().join("vectors.npy"), 0..300, false);
        write_labels(&folder.path().join("labels.csv"), 0, 60);
        Self { folder }
    }

    /// The same, with a run on the vectors.
    fn trained() -> Self {
        let scene = Self::new();
        let train = ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run"];
        scene.succeeds(&[&train[..], &["--set", "network.folds=3", "--threads", "1", "--quiet"]].concat());
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn under(&self, command: &mut Command) -> Output {
        command.current_dir(self.folder.path()).env("TMPDIR", self.path("tmp"));
        command.stdin(Stdio::null()).output().unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.under(Command::new(env!("CARGO_BIN_EXE_calmix")).args(arguments))
    }

    #[track_caller]
    fn succeeds(&self, arguments: &[&str]) {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", planted::text(&output));
    }

    /// Runs a command under strace with these options; returns what strace noted.
    fn traced(&self, options: &[&str], arguments: &[&str]) -> (Output, String) {
        // Not in the folder that is searched for traces.
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o"]).arg(log.path()).args(options);
        strace.arg(env!("CARGO_BIN_EXE_calmix")).args(arguments);
        let output = self.under(&mut strace);
        (output, fs::read_to_string(log.path()).unwrap())
    }

    /// The calls of an uninterrupted command, each with its number among its like: as many as there are kills, spread over
    /// all of them.
    fn places(&self, arguments: &[&str]) -> Vec<Place> {
        let (output, log) = self.traced(&["-e", &format!("trace={}", CALLS.join(","))], arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", planted::text(&output));
        // strace counts the calls of each thread apart.
        let mut threads: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        let mut places: Vec<Place> = Vec::new();
        for line in log.lines() {
            let thread = line.split(' ').next().unwrap_or_default();
            let Some(call) = CALLS.into_iter().find(|call| line.contains(&format!(" {call}("))) else {
                continue;
            };
            let counted = threads.entry(thread).or_default().entry(call).or_default();
            *counted += 1;
            if !places.contains(&(call, *counted)) {
                places.push((call, *counted));
            }
        }
        assert!(places.len() >= 10, "strace may not trace here: {log}");
        let kills = kills().min(places.len());
        (0..kills).map(|kill| places[kill * (places.len() - 1) / (kills - 1).max(1)]).collect()
    }

    /// Runs a command that is killed when it makes a call for the `number`-th time.
    fn killed(&self, (call, number): Place, arguments: &[&str]) {
        let inject = format!("inject={call}:signal=KILL:when={number}");
        let (output, _) = self.traced(&["-e", &format!("trace={call}"), "-e", &inject], arguments);
        assert_eq!(output.status.signal(), Some(9), "{call} {number}: {}", planted::text(&output));
    }

    /// Hidden files and folders anywhere, and what is in the folder for temporary files.
    fn traces(&self) -> Vec<String> {
        let is_hidden = |name: &str| name.split('/').any(|part| part.starts_with('.'));
        let names = names_below(self.folder.path()).into_iter();
        names.filter(|name| is_hidden(name) || name.starts_with("tmp/")).collect()
    }

    /// Kills a command at each place; `next` succeeds and leaves no trace. Some of the kills must have left one.
    fn leaves_no_trace(&self, places: &[Place], arguments: &[&str], next: impl Fn(&str)) {
        let mut left = 0;
        for &place in places {
            self.killed(place, arguments);
            left += usize::from(!self.traces().is_empty());
            let case = format!("{} killed at {place:?}", arguments[0]);
            next(&case);
            assert_eq!(self.traces(), [""; 0], "{case}");
        }
        // `--no-capture` shows it.
        println!("{}: {left} of {} kills left a trace", arguments[0], places.len());
        assert!(left > 0, "{places:?}");
    }
}

fn names_below(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            names.extend(names_below(&entry.path()).into_iter().map(|inner| format!("{name}/{inner}")));
        }
        names.insert(name);
    }
    names
}

/// The bytes of all files of a folder.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = names_below(folder).into_iter().filter(|name| folder.join(name).is_file());
    files.map(|name| (name.clone(), fs::read(folder.join(&name)).unwrap())).collect()
}

fn has_strace() -> bool {
    let has_it = Command::new("strace").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has_it {
        tier::skipped("there is no strace (Debian: strace)");
    }
    has_it
}

#[test]
fn killed_prepare_leaves_no_trace() {
    if !has_strace() {
        return;
    }
    let scene = Scene::new();
    let prepare = ["prepare", "vectors.npy", "--labels", "labels.csv", "--to", "table"];
    let places = scene.places(&prepare);
    let table = contents(&scene.path("table"));
    fs::remove_dir_all(scene.path("table")).unwrap();
    scene.leaves_no_trace(&places, &prepare, |case| {
        // Killed after the table was there.
        let force = if scene.path("table").exists() { &["--force"][..] } else { &[] };
        scene.succeeds(&[&prepare[..], force].concat());
        assert!(contents(&scene.path("table")) == table, "{case}");
        fs::remove_dir_all(scene.path("table")).unwrap();
    });
}

#[test]
fn killed_export_leaves_no_trace() {
    if !has_strace() {
        return;
    }
    let scene = Scene::trained();
    let export = |folder| ["export", "run", "--to", folder, "--threads", "1"];
    let places = scene.places(&export("exported/model"));
    let exported = contents(&scene.path("exported/model"));
    fs::remove_dir_all(scene.path("exported")).unwrap();
    scene.leaves_no_trace(&places, &export("exported/model"), |case| {
        let is_there = scene.path("exported/model").exists();
        assert!(!is_there || contents(&scene.path("exported/model")) == exported, "{case}");
        let folder = if is_there { "exported/again" } else { "exported/model" };
        scene.succeeds(&export(folder));
        // The card names the folder.
        assert_eq!(contents(&scene.path(folder)).len(), exported.len(), "{case}");
        assert_eq!(scene.traces(), [""; 0], "{case}");
        fs::remove_dir_all(scene.path("exported")).unwrap();
    });
}

#[test]
fn killed_calibration_leaves_the_undo() {
    if !has_strace() {
        return;
    }
    let scene = Scene::trained();
    write_npy(&scene.path("later.npy"), 300..390, false);
    write_labels(&scene.path("later.csv"), 300, 90);
    let before = contents(&scene.path("run"));
    let calibrate = ["calibrate", "run", "--on", "later.npy", "--labels", "later.csv", "--threads", "1"];
    let places = scene.places(&calibrate);
    let after = contents(&scene.path("run"));
    assert!(after["model.previous.json"] == before["model.json"]);
    assert!(after["model.json"] != before["model.json"]);
    assert!(after["head.safetensors"] != before["head.safetensors"]);
    let undo = || {
        let _ = fs::remove_file(scene.path("run/model.previous.json"));
        for name in ["model.json", "head.safetensors"] {
            fs::write(scene.path("run").join(name), &before[name]).unwrap();
        }
    };
    undo();
    scene.leaves_no_trace(&places, &calibrate, |case| {
        scene.succeeds(&calibrate);
        assert!(contents(&scene.path("run")) == after, "{case}");
        undo();
    });
    // Killed when the new calibration is there and the head is not folded again.
    scene.succeeds(&calibrate);
    fs::write(scene.path("run/head.safetensors"), &before["head.safetensors"]).unwrap();
    scene.succeeds(&calibrate);
    assert!(contents(&scene.path("run")) == after);
}

#[test]
fn killed_prediction_resumes_without_trace() {
    if !has_strace() {
        return;
    }
    let scene = Scene::trained();
    let out = ["--out", "rows.parquet", "--part-rows", "100"];
    let predict = [&["predict", "run", "vectors.npy", "--threads", "1"], &out[..]].concat();
    let places = scene.places(&predict);
    let rows = contents(&scene.path("rows.parquet"));
    let remove = || {
        fs::remove_dir_all(scene.path("rows.parquet")).unwrap();
        for name in ["rows.parquet.predict.json", "rows.parquet.parts.jsonl"] {
            fs::remove_file(scene.path(name)).unwrap();
        }
    };
    remove();
    scene.leaves_no_trace(&places, &predict, |case| {
        scene.succeeds(&[&predict[..], &["--resume"]].concat());
        assert!(contents(&scene.path("rows.parquet")) == rows, "{case}");
        remove();
    });
}

#[test]
fn killed_certification_goes_on() {
    if !has_strace() {
        return;
    }
    let scene = Scene::trained();
    let pool = ["--pool", "vectors.npy", "--labels", "labels.csv"];
    let begin = [&["certify", "run"], &pool[..], &["--error", "0.2", "--threads", "1"]].concat();
    let certificate = || contents(&scene.path("certificate"));
    let names = |files: BTreeMap<String, Vec<u8>>| files.into_keys().collect::<Vec<_>>();
    let verify = || scene.succeeds(&["verify", "certificate/certificate.json", "vectors.npy"]);
    let places = scene.places(&begin);
    let begun = certificate();
    fs::remove_dir_all(scene.path("certificate")).unwrap();
    scene.leaves_no_trace(&places, &begin, |case| {
        scene.succeeds(&begin);
        assert_eq!(names(certificate()), names(begun.clone()), "{case}");
        // The certificate names its time; all that an auditor sees is the same.
        for name in ["labels.csv", "review-1.csv", "review-1.html"] {
            assert!(certificate()[name] == begun[name], "{case}: {name}");
        }
        verify();
        fs::remove_dir_all(scene.path("certificate")).unwrap();
    });

    let restore = || {
        let _ = fs::remove_dir_all(scene.path("certificate"));
        fs::create_dir(scene.path("certificate")).unwrap();
        for (name, bytes) in &begun {
            fs::write(scene.path("certificate").join(name), bytes).unwrap();
        }
    };
    let mut answers = "file,label,drawn\n".to_owned();
    let mut rows = csv::Reader::from_reader(begun["review-1.csv"].as_slice());
    for row in rows.records().map(Result::unwrap) {
        answers.extend([&row[0], ",", planted::class(row[0].parse().unwrap()), ",audit\n"]);
    }
    fs::write(scene.path("answers.csv"), answers).unwrap();
    let take = [&begin[..], &["--answers", "answers.csv"]].concat();
    let result = || {
        let json: serde_json::Value = serde_json::from_slice(&certificate()["certificate.json"]).unwrap();
        json["result"].clone()
    };
    restore();
    let places = scene.places(&take);
    let (audited, expected) = (certificate(), result());
    assert!(expected["certified_rows"].as_u64() > Some(0), "{expected}");
    restore();
    scene.leaves_no_trace(&places, &take, |case| {
        scene.succeeds(&take);
        assert_eq!(names(certificate()), names(audited.clone()), "{case}");
        assert_eq!(result(), expected, "{case}");
        verify();
        restore();
    });
}
