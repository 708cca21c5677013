//! `calmix predict` on a model from an untrusted source, and on an output that is not what it wrote: refused in a
//! sentence, with the right exit code; it never hangs, panics, takes memory without limit or writes elsewhere.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use calmix::Model;
use calmix_testkit::tier;
use calmix_testkit::workspace::Workspace;
use calmix_torch::run::model_info::ModelInfo;
use serde_json::{Value, json};

use super::fixture::Fixture;
use super::library::Library;
use super::measured::{Ended, Worst, measured, watched};

/// Bytes that a model of the largest images may take.
const MAX_LARGE_IMAGE_BYTES: u64 = 2 << 30;

/// What is done to a file.
type Harm<'a> = Box<dyn Fn(&Path) + 'a>;

/// Kinds of files that are no plain file.
fn not_files(outside: &Path) -> Vec<(&'static str, Harm<'_>)> {
    let instead = |put: Box<dyn Fn(&Path)>| -> Harm<'_> {
        Box::new(move |path| {
            let _ = fs::remove_file(path);
            let _ = fs::remove_dir_all(path);
            put(path);
        })
    };
    let target = outside.to_owned();
    vec![
        ("a link", instead(Box::new(move |path| symlink(&target, path).unwrap()))),
        ("an endless link", instead(Box::new(|path| symlink("/dev/zero", path).unwrap()))),
        ("a folder", instead(Box::new(|path| fs::create_dir(path).unwrap()))),
        (
            "a pipe",
            instead(Box::new(|path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()))),
        ),
        ("a file of holes", instead(Box::new(|path| File::create(path).unwrap().set_len(3 << 30).unwrap()))),
    ]
}

fn flipped(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn halved(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

/// Changes a value of a JSON document.
fn with(key: &'static str, value: Value) -> Harm<'static> {
    Box::new(move |path| {
        let mut json: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert!(json.get(key).is_some(), "{key}");
        json[key] = value.clone();
        fs::write(path, json.to_string()).unwrap();
    })
}

fn copy(workspace: &Workspace, from: &str, to: &str) {
    let _ = fs::remove_dir_all(workspace.path(to));
    let _ = fs::remove_file(workspace.path(to));
    let status = Command::new("cp").arg("-r").arg(workspace.path(from)).arg(workspace.path(to)).status();
    assert!(status.unwrap().success());
}

#[track_caller]
fn refused(ended: &Ended, honest: &Ended, code: i32, names: &str, what: &str) {
    let text = &ended.text;
    assert_eq!(ended.code, Some(code), "{what}: {text}");
    let sentence = text.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(sentence.contains(names), "{what}: {text}");
    assert!(!text.contains("panicked"), "{what}: {text}");
    ended.is_modest(honest, what);
}

/// The library loads every one of them. A process loads two damages of each file, and weights that are not a plain file; with
/// `CALMIX_EXHAUSTIVE=1` all.
#[test]
#[allow(clippy::print_stderr)] // What it took.
fn damaged_models_are_refused() {
    let workspace = Fixture::Photos.copy();
    fs::write(workspace.path("sentinel"), "precious\n").unwrap();
    let predict = |run: &str| measured(workspace.command(&["predict", run, "photos/cat", "--threads", "1"]));
    let honest = predict("run");
    assert_eq!(honest.code, Some(0), "{}", honest.text);
    let outside = workspace.path("sentinel");
    let plain = |write: fn(&Path)| -> Harm<'_> { Box::new(write) };
    let mut cases: Vec<(&str, &str, Harm<'_>)> = vec![
        ("model.json", "empty", plain(|path| fs::write(path, "").unwrap())),
        ("model.json", "cut", plain(halved)),
        ("model.json", "not UTF-8", plain(|path| fs::write(path, b"{\"\xff\": 1}").unwrap())),
        ("model.json", "nested", plain(|path| fs::write(path, "[".repeat(1 << 20)).unwrap())),
        ("model.json", "another format", with("format", 99.into())),
        ("model.json", "no network", with("network", "\u{1b}]0;owned\u{7}".into())),
        ("model.json", "an enormous network", with("network", "wrn-994-100".into())),
        ("model.json", "enormous images", with("size", 4096.into())),
        ("model.json", "no images", with("size", 0.into())),
        ("model.json", "negative", with("size", (-1).into())),
        ("model.json", "another model", with("blake3", "0".repeat(64).into())),
        ("model.json", "other classes", with("classes", vec!["cat", "dog", "cow"].into())),
        ("model.json", "one class twice", with("classes", vec!["cat", "cat"].into())),
        ("model.safetensors", "empty", plain(|path| fs::write(path, "").unwrap())),
        ("model.safetensors", "cut", plain(halved)),
        ("model.safetensors", "changed", plain(flipped)),
        (
            "model.safetensors",
            "a header of an exabyte",
            plain(|path| fs::write(path, [&(1_u64 << 60).to_le_bytes()[..], b"{}"].concat()).unwrap()),
        ),
    ];
    for name in ["model.json", "model.safetensors"] {
        cases.extend(not_files(&outside).into_iter().map(|(what, harm)| (name, what, harm)));
    }
    let mut library = Library::start();
    let honest_call = library.call("predict", &workspace.path("run"));
    assert_eq!(honest_call.text, "");
    let mut worst = Worst::default();
    for (n, (name, what, harm)) in cases.iter().enumerate() {
        copy(&workspace, "run", "hostile");
        harm(&workspace.path("hostile").join(name));
        let case = format!("{name}, {what}");
        // Which of the two files is wrong cannot be known where they contradict each other.
        let called = library.call("predict", &workspace.path("hostile"));
        assert!(called.text.contains("hostile/model."), "{case}: {}", called.text);
        called.is_modest(&honest_call, &case);
        worst.count(&called);
        let is_shown = ["cut", "another model", "changed"].contains(what) || n >= cases.len() - 5;
        if tier::is_exhaustive() || is_shown {
            let ended = predict("hostile");
            refused(&ended, &honest, 1, "hostile/model.", &case);
            worst.count(&ended);
        }
    }
    eprintln!("{worst}");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "precious\n");
}

/// What is done to a description.
type Forgery = Box<dyn Fn(&mut ModelInfo)>;

/// Writes an untrusted model with valid hashes: the run `run` with another description.
fn forge(workspace: &Workspace, change: impl FnOnce(&mut ModelInfo)) {
    copy(workspace, "run", "hostile");
    let (info, weights) = (workspace.path("hostile/model.json"), workspace.path("hostile/model.safetensors"));
    let mut forged: ModelInfo = serde_json::from_slice(&fs::read(&info).unwrap()).unwrap();
    change(&mut forged);
    let bytes = forged.embed(&fs::read(&weights).unwrap()).unwrap();
    fs::write(weights, bytes).unwrap();
    fs::write(info, serde_json::to_vec(&forged).unwrap()).unwrap();
}

/// Images of 2,048 pixels, of which a batch had 256 and a pass 64: 22 GB.
#[test]
fn small_model_takes_little_memory() {
    let workspace = Fixture::Photos.copy();
    forge(&workspace, |info| (info.model.as_mut().unwrap().size, info.resize) = (2_048, 2_048));
    // A pass is filled up with empty images, so one image is enough.
    let command = workspace.command(&["predict", "hostile", "--threads", "1", "photos/cat/0.png"]);
    let ended = watched(command, Duration::from_mins(5), MAX_LARGE_IMAGE_BYTES);
    assert_eq!(ended.code, Some(0), "{} MB in {:?}: {}", ended.peak >> 20, ended.took, ended.text);
    assert!(ended.peak < MAX_LARGE_IMAGE_BYTES, "{} MB", ended.peak >> 20);
    let model = Model::load(workspace.path("hostile")).unwrap();
    assert!(model.batch() * model.transform().bytes() <= 64 << 20, "{} images", model.batch());
}

/// The description contradicts itself or the weights: the error names the file, and is found before the first image.
#[test]
fn forged_descriptions_are_refused() {
    let workspace = Fixture::Photos.copy();
    let honest = measured(workspace.command(&["predict", "run", "photos/cat", "--threads", "1"]));
    forge(&workspace, |info| info.model.as_mut().unwrap().std[1] = 0.0);
    let ended = measured(workspace.command(&["predict", "hostile", "photos/cat", "--threads", "1"]));
    refused(&ended, &honest, 1, "hostile/model.json: std", "no deviation");
    let one = |info: &ModelInfo| info.calibration.clone().expect("the fixture is calibrated");
    let forgeries: [(&str, &str, Forgery); 9] = [
        ("no deviation", "model.json: std", Box::new(|info| info.model.as_mut().unwrap().std[1] = 0.0)),
        (
            "a negative deviation",
            "model.json: std",
            Box::new(|info| info.model.as_mut().unwrap().std[2] = -0.5),
        ),
        (
            "a tiny deviation",
            "model.json: std",
            Box::new(|info| info.model.as_mut().unwrap().std[0] = 1e-300),
        ),
        (
            "an enormous mean",
            "model.json: mean",
            Box::new(|info| info.model.as_mut().unwrap().mean[0] = 1e300),
        ),
        (
            "a negative epsilon",
            "model.json: norm_eps",
            Box::new(|info| info.model.as_mut().unwrap().norm_eps = Some(-1e9)),
        ),
        (
            "another network",
            "model.safetensors: ",
            Box::new(|info| info.model.as_mut().unwrap().network = "wrn-16-1".parse().unwrap()),
        ),
        (
            "a wider network",
            "model.safetensors: ",
            Box::new(|info| info.model.as_mut().unwrap().network = "wrn-10-2".parse().unwrap()),
        ),
        (
            "a calibrator of three classes",
            "model.json: calibration",
            Box::new(move |info| {
                let mut calibration = serde_json::to_value(one(info)).unwrap();
                calibration["calibrator"] =
                    json!({"kind": "vector", "scale": [1.0, 1.0, 1.0], "bias": [0.0, 0.0, 0.0]});
                info.calibration = Some(serde_json::from_value(calibration).unwrap());
            }),
        ),
        (
            "a score above one",
            "model.json: held_out",
            Box::new(|info| info.held_out.as_mut().expect("labels were held out").lac[0] = 2.0),
        ),
    ];
    for (what, names, change) in forgeries {
        forge(&workspace, change);
        let error = Model::load(workspace.path("hostile")).unwrap_err().to_string();
        assert!(error.contains(names) && error.contains("/hostile/"), "{what}: {error}");
    }
}

#[test]
#[allow(clippy::print_stderr)] // What it took.
fn damaged_outputs_are_not_resumed() {
    let workspace = Fixture::Photos.copy();
    fs::write(workspace.path("sentinel"), "precious\n").unwrap();
    let resume = |out: &str| {
        let arguments =
            ["predict", "run", "photos/cat", "--threads", "1", "--part-rows", "4", "--resume", "--out"];
        measured(workspace.command(&[&arguments[..], &[out]].concat()))
    };
    let outside = workspace.path("sentinel");
    let plain = |write: fn(&Path)| -> Harm<'_> { Box::new(write) };
    let mut cases: Vec<(&str, &str, Harm<'_>)> = vec![
        ("out.csv", "other rows", plain(|path| fs::write(path, "no,rows\n").unwrap())),
        (
            "out.csv",
            "one row changed",
            plain(|path| {
                let text = fs::read_to_string(path).unwrap();
                let (head, _) = text.trim_end().rsplit_once('\n').unwrap();
                fs::write(path, format!("{head}\n\u{fffd},cat\n")).unwrap();
            }),
        ),
        (
            "out.csv",
            "a row without end",
            plain(|path| {
                let text = fs::read(path).unwrap();
                fs::write(path, [text, vec![b'x'; 20 << 20]].concat()).unwrap();
            }),
        ),
        ("out.csv.predict.json", "missing", plain(|path| fs::remove_file(path).unwrap())),
        ("out.csv.predict.json", "cut", plain(halved)),
        ("out.csv.predict.json", "nested", plain(|path| fs::write(path, "[".repeat(1 << 20)).unwrap())),
        ("out.csv.predict.json", "another model", with("model", "\u{1b}[31m".into())),
        ("out.parquet/part-00001.parquet", "missing", plain(|path| fs::remove_file(path).unwrap())),
        ("out.parquet/part-00001.parquet", "cut", plain(halved)),
        ("out.parquet/part-00001.parquet", "changed", plain(flipped)),
        ("out.parquet.parts.jsonl", "missing", plain(|path| fs::remove_file(path).unwrap())),
        ("out.parquet.parts.jsonl", "no list", plain(|path| fs::write(path, "{}\n").unwrap())),
        (
            "out.parquet.parts.jsonl",
            "enormous numbers",
            plain(|path| {
                let text = fs::read_to_string(path).unwrap();
                fs::write(path, text.replace("\"rows\":4", &format!("\"rows\":{}", u64::MAX))).unwrap();
            }),
        ),
        (
            "out.parquet",
            "a file",
            plain(|path| {
                fs::remove_dir_all(path).unwrap();
                fs::write(path, "").unwrap();
            }),
        ),
    ];
    // One kind for each file, so that each kind but the slowest is tried; with `CALMIX_EXHAUSTIVE=1` every kind for each.
    for (name, shown) in [
        ("out.csv", "a link"),
        ("out.csv.predict.json", "a pipe"),
        ("out.parquet/part-00001.parquet", "an endless link"),
        ("out.parquet.parts.jsonl", "a folder"),
    ] {
        let kinds =
            not_files(&outside).into_iter().filter(|(what, _)| tier::is_exhaustive() || *what == shown);
        cases.extend(kinds.map(|(what, harm)| (name, what, harm)));
    }
    for out in ["out.csv", "out.parquet"] {
        let made = resume(out);
        assert_eq!(made.code, Some(0), "{}", made.text);
    }
    fs::create_dir(workspace.path("kept")).unwrap();
    let all = [
        "out.csv",
        "out.csv.predict.json",
        "out.parquet",
        "out.parquet.predict.json",
        "out.parquet.parts.jsonl",
    ];
    for name in all {
        copy(&workspace, name, &format!("kept/{name}"));
    }
    let honest = resume("out.csv");
    let mut worst = Worst::default();
    for (name, what, harm) in &cases {
        for name in all {
            copy(&workspace, &format!("kept/{name}"), name);
        }
        harm(&workspace.path(name));
        let ended = resume(if name.starts_with("out.csv") { "out.csv" } else { "out.parquet" });
        refused(&ended, &honest, 2, "", &format!("{name}, {what}"));
        worst.count(&ended);
    }
    eprintln!("{worst}");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "precious\n");
}
