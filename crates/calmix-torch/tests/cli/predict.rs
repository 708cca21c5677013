//! `calmix predict`: rows of images, in order, whatever interrupts it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use calmix_testkit::dataset_files::shard;
use calmix_testkit::workspace::{CommandOutput, Workspace};
use calmix_torch::metrics::calibrator::temperature::Temperature;
use calmix_torch::metrics::held_out::HeldOut;

use calmix_torch::run::model_info::ModelInfo;
use calmix_torch::run::tensor_files::predictions_file;
use serde_json::Value;

use super::fixture::Fixture;
use super::near::assert_near;

pub(crate) fn predict(workspace: &Workspace, arguments: &[&str]) -> CommandOutput {
    workspace.end(workspace.command(&[&["predict", "run", "--threads", "1"], arguments].concat()))
}

/// The rows of JSON lines, by path.
pub(crate) fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The sizes of batches, corrupt files and the rest of a list change no bit of a row; libtorch computed the evaluation.
#[test]
fn rows_are_those_of_the_evaluation() {
    let workspace = Fixture::Photos.copy();
    let said = fs::read(workspace.path("run/predictions/step-000000004-validation-ema.safetensors")).unwrap();
    let said = predictions_file::from_bytes(&said).unwrap();
    let info: Value = serde_json::from_slice(&fs::read(workspace.path("run/model.json")).unwrap()).unwrap();
    let temperature = info["scaling"]["temperature"].as_f64().unwrap_or(1.0);
    let probabilities = Temperature::new(temperature).unwrap().probabilities(said.matrix().unwrap());
    let arguments = ["photos", "--format", "jsonl", "--probabilities"];
    let all = predict(&workspace, &arguments).with_code(0);
    all.reports(&["33 images, ", "1 image could not be read"]);
    let all = rows(&all.stdout);
    let paths: Vec<_> = all.iter().map(|row| row["path"].as_str().unwrap().to_owned()).collect();
    let mut sorted = paths.clone();
    sorted.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    assert_eq!((paths.len(), &paths), (33, &sorted));

    // Ids go through the classes and their files by name, without the one that is not an image.
    let images: Vec<_> = all.iter().filter(|row| row["error"].is_null()).collect();
    assert!(!said.ids.is_empty());
    for (&id, expected) in said.ids.iter().zip(probabilities.chunks_exact(2)) {
        let found = images[id as usize]["probabilities"].as_array().unwrap();
        let found: Vec<f32> = found.iter().map(|p| p.as_f64().unwrap() as f32).collect();
        assert_near(&found, expected, &format!("sample {id}"));
    }
    for (batch, paths) in [("1", &["photos"][..]), ("7", &["photos/unlabelled", "photos/cat/3.png"])] {
        let arguments = [paths, &["--format", "jsonl", "--probabilities", "--batch", batch]].concat();
        let again = rows(&predict(&workspace, &arguments).with_code(0).stdout);
        assert!(again.len() >= 13);
        for row in again {
            assert!(all.contains(&row), "{row}");
        }
    }
    let broken = all.iter().find(|row| row["path"] == "photos/cat/broken.png").unwrap();
    assert!(broken["label"].is_null() && broken["confidence"].is_null());
    assert!(broken["error"].as_str().unwrap().starts_with("photos/cat/broken.png: "), "{broken}");
}

/// Cats have enough held-out labels for a threshold, dogs do not: dogs are in every set, with one warning.
#[test]
fn sets_by_class_name_the_classes_with_too_few_labels() {
    let workspace = Fixture::Photos.copy();
    let path = workspace.path("run/model.json");
    let mut info: ModelInfo = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let label: Vec<u32> = (0..15).map(|row| u32::from(row >= 12)).collect();
    info.held_out = Some(HeldOut {
        answer: vec![1.0; 15],
        right: vec![true; 15],
        lac: vec![0.0; 15],
        aps: vec![0.0; 15],
        label,
        ..HeldOut::default()
    });
    info.seal().unwrap();
    fs::write(&path, serde_json::to_vec(&info).unwrap()).unwrap();
    let by_class = ["photos", "--sets", "lac-by-class", "--out", "rows.jsonl"];
    predict(&workspace, &by_class).with_code(0).reports(&[
        "warning: a coverage of 90% for each class needs 9 held-out labels per class; classes with fewer are in every \
         prediction set: dog (6 more)\n",
    ]);
    let found = rows(&fs::read_to_string(workspace.path("rows.jsonl")).unwrap());
    let images: Vec<_> = found.iter().filter(|row| row["error"].is_null()).collect();
    assert_eq!(images.len(), 32);
    for row in images {
        let set = row["set"].as_array().unwrap();
        // Every held-out cat was predicted as one, so a cat is in a set only where it is the label.
        assert!(set.contains(&"dog".into()) && set[0] == row["label"], "{row}");
        assert_eq!(set.contains(&"cat".into()), row["label"] == "cat", "{row}");
    }
    let note: Value =
        serde_json::from_slice(&fs::read(workspace.path("rows.jsonl.predict.json")).unwrap()).unwrap();
    assert_eq!(note["sets"], "lac-by-class");
    assert_eq!(note["in_every_set"], serde_json::json!([{ "class": "dog", "missing_labels": 6 }]));
}

#[test]
fn every_way_to_name_images() {
    let workspace = Fixture::Photos.copy();
    fs::create_dir(workspace.path("more")).unwrap();
    let png = fs::read(workspace.path("photos/dog/1.png")).unwrap();
    fs::write(workspace.path("more/no ending, but an image"), &png).unwrap();
    fs::write(workspace.path("more/notes.txt"), "no image").unwrap();
    fs::write(workspace.path("more/.hidden.png"), &png).unwrap();
    fs::create_dir(workspace.path("more/a")).unwrap();
    fs::write(workspace.path("more/a.png"), &png).unwrap();
    fs::write(workspace.path("more/a/b.png"), &png).unwrap();
    shard(&workspace.path("more/z.tar"), &[("0.png", &png), ("0.cls", b"1"), ("sub/1.png", b"broken")]);
    let outside = workspace.path("photos/cat/0.png");
    std::os::unix::fs::symlink(outside, workspace.path("more/link.png")).unwrap();
    std::os::unix::fs::symlink("a.png", workspace.path("more/near.png")).unwrap();
    let output = predict(&workspace, &["more"]).with_code(0);
    let lines: Vec<_> = output.stdout.lines().collect();
    assert_eq!(lines[0], "path,label,confidence,margin,set,abstain,error");
    let starts = [
        "more/a.png,",
        "more/a/b.png,",
        "more/link.png,,,,,,more/link.png: a link that leads out of the folder; calmix does not follow it",
        "more/near.png,",
        "\"more/no ending, but an image\",",
        "more/z.tar/0.png,",
        "more/z.tar/sub/1.png,,,,,,\"more/z.tar/sub/1.png: this is not an image",
    ];
    assert_eq!(lines.len(), 1 + starts.len(), "{}", output.stdout);
    for (line, start) in lines[1..].iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    // The same image has the same row.
    let rest = |n: usize| lines[n].split_once(',').unwrap().1.to_owned();
    assert_eq!(rest(1), rest(2));

    fs::write(workspace.path("list"), "photos/dog/1.png\n\nmissing.png\r\nmore/a\n").unwrap();
    let listed = predict(&workspace, &["--list", "list"]).with_code(0);
    let listed: Vec<_> = listed.stdout.lines().skip(1).collect();
    assert_eq!(listed.len(), 3);
    assert!(listed[1].starts_with("missing.png,,,,,,missing.png: No such file"), "{}", listed[1]);
    assert_eq!(listed[2], lines[2]);
    let mut command = workspace.command(&["predict", "run", "--threads", "1", "-"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"more/a.png\n\xff.png").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\nmore/a.png,") && text.contains("\n\\xff.png,,,,,,"), "{text}");
    // A command that reads nothing has failed.
    predict(&workspace, &["photos/cat/broken.png"]).with_code(1);
    fs::write(workspace.path("vectors.npy"), b"\x93NUMPY").unwrap();
    predict(&workspace, &["vectors.npy"])
        .with_code(2)
        .reports(&["vectors.npy is a file of vectors, but run was trained on images"]);
    predict(&workspace, &["nowhere"]).with_code(2).reports(&["nowhere: does not exist"]);
    workspace
        .run(&["predict", "more", "photos"])
        .with_code(2)
        .reports(&["more: there is no run and no model here"]);
    workspace.run(&["predict", "nowhere", "photos"]).with_code(2).reports(&["nowhere: does not exist"]);
    predict(&workspace, &["photos", "--coverage", "1"]).with_code(2).reports(&["--coverage is 1"]);
    predict(&workspace, &["photos", "--resume"]).with_code(2).reports(&["--out <FILE>"]);
}

/// Killed again and again, an output ends with the rows of one that was never killed; others do not go on with it.
#[test]
fn a_killed_output_goes_on_with_the_next_row() {
    let workspace = Fixture::Photos.copy();
    let list = (0..400).map(|n| format!("photos/dog/{}.png\n", n % 10)).collect::<Vec<_>>().concat();
    fs::write(workspace.path("list"), list + "photos/cat/broken.png\nphotos/cat/0.png\n").unwrap();
    let arguments = |out| ["--list", "list", "--out", out, "--batch", "4"];
    predict(&workspace, &arguments("whole.csv")).with_code(0);
    let resumed = [&arguments("killed.csv")[..], &["--resume"]].concat();
    let mut ended = false;
    for n in 0..20 {
        let mut command = workspace.command(&[&["predict", "run", "--threads", "1"], &resumed[..]].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(250 + 40 * (n % 10)));
        child.kill().unwrap();
        ended = child.wait().unwrap().success();
        if ended {
            break;
        }
    }
    if !ended {
        predict(&workspace, &resumed).with_code(0);
    }
    let read = |name: &str| fs::read_to_string(workspace.path(name)).unwrap();
    assert_eq!(read("killed.csv"), read("whole.csv"));
    assert_eq!(read("whole.csv").lines().count(), 1 + 402);
    // Once more changes nothing.
    predict(&workspace, &resumed).with_code(0).reports(&["0 images in addition to 402 from before"]);
    assert_eq!(read("killed.csv"), read("whole.csv"));
    predict(&workspace, &arguments("killed.csv")).with_code(2).reports(&["already exists", "--resume"]);
    let other = [&resumed[..], &["--coverage", "0.8"]].concat();
    predict(&workspace, &other).with_code(2).reports(&["it was written with coverage 0.9, not 0.8"]);
    fs::write(workspace.path("list"), "photos/dog/1.png\n".repeat(402)).unwrap();
    predict(&workspace, &resumed)
        .with_code(2)
        .reports(&["image 402 is not the one that was predicted before"]);
}

#[test]
fn shards_are_the_whole_and_no_row_is_in_two() {
    let workspace = Fixture::Photos.copy();
    let all = predict(&workspace, &["photos"]).with_code(0).stdout;
    let mut found = BTreeMap::new();
    for index in 1..=4 {
        if index < 4 {
            let shard = format!("{index}/4");
            predict(&workspace, &["photos", "--shard", &shard, "--out", "out.csv"]).with_code(0);
        } else {
            // As torchrun starts it.
            let mut command = workspace.command(&["predict", "run", "photos", "--out", "out.csv"]);
            for (name, value) in [("RANK", "3"), ("WORLD_SIZE", "4"), ("LOCAL_RANK", "3")] {
                command.env(name, value);
            }
            command.env("LOCAL_WORLD_SIZE", "4").env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", "1");
            workspace.end(command).with_code(0);
        }
        let text = fs::read_to_string(workspace.path(&format!("out-{index}-of-4.csv"))).unwrap();
        assert!(text.lines().count() > 1, "shard {index} is empty");
        for row in text.lines().skip(1) {
            assert!(found.insert(row.to_owned(), index).is_none(), "twice: {row}");
        }
    }
    let all: BTreeMap<_, _> = all.lines().skip(1).map(|row| (row.to_owned(), 0)).collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), all.keys().collect::<Vec<_>>());
    assert_eq!(found.len(), 33);
}

/// A full disk, and no standard output at all: rows are lost, and the exit code and the message say so.
#[test]
fn lost_rows_are_a_failure() {
    let workspace = Fixture::Photos.copy();
    let shell = |script: &str| {
        let predict = workspace.command(&["predict", "run", "photos", "--threads", "1"]);
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script, "sh"]).arg(predict.get_program()).args(predict.get_args());
        command.current_dir(workspace.folder());
        workspace.end(command)
    };
    shell("\"$@\" > /dev/full")
        .with_code(1)
        .reports(&["error: cannot write to standard output: No space left"]);
    shell("\"$@\" >&-").with_code(1).reports(&["error: standard output is closed", "--out"]);
    shell("\"$@\" > /dev/null").with_code(0);
    shell("\"$@\" --out out.csv >&-").with_code(0);
    // The reader has what it wants.
    assert_eq!(
        shell("\"$@\" | head -1").with_code(0).stdout,
        "path,label,confidence,margin,set,abstain,error\n"
    );
}

/// ONNX Runtime would make a database and an identifier of the device in the user's folders.
#[test]
fn runtime_leaves_nothing_of_its_own() {
    let workspace = Fixture::Photos.copy();
    let [home, scratch] = ["home", "scratch"].map(|name| workspace.path(name));
    for folder in [&home, &scratch] {
        fs::create_dir(folder).unwrap();
    }
    let mut command = workspace.command(&["predict", "run", "photos", "--threads", "1"]);
    command.env("HOME", &home).env_remove("XDG_CACHE_HOME").env("TMPDIR", &scratch);
    command.env("ORT_DYLIB_PATH", calmix_ort::library::path().unwrap()).env_remove("ORT_DISABLE_TELEMETRY");
    workspace.end(command).with_code(0);
    for folder in [home, scratch] {
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    }
}
