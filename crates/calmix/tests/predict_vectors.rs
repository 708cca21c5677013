//! `calmix predict` on vectors, as a whole command: no libtorch, rows in order, whatever interrupts it.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use calmix::core::matrix::Matrix;
use calmix::core::rng::{Domain, Seed};
use calmix::metrics::calibrator::Calibrator;
use calmix::metrics::held_out::HeldOut;
use calmix_head::model::HeadModel;
use calmix_head::network::{Head, HeadShape};
use calmix_head::projection::Projection;
use calmix_testkit::npy_file;
use serde_json::Value;

use crate::model_files::write_model;

const WIDTH: usize = 12;
const ROWS: usize = 10_000;
/// A row with a number that is not finite.
const BAD: usize = 7;
const CLASSES: [&str; 3] = ["cat", "dog", "=owl"];

/// A folder with a run in it, and vectors.
struct Scene {
    folder: tempfile::TempDir,
    vectors: Vec<f32>,
    model: HeadModel,
}

struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Scene {
    fn new() -> Self {
        let mut stream = Seed(3).stream(Domain::Init, 0, 0);
        let mut vectors: Vec<f32> = (0..ROWS * WIDTH).map(|_| stream.normal() as f32).collect();
        let projection = Projection::fit(Matrix::new(&vectors, ROWS, WIDTH).unwrap(), 5).unwrap();
        let shape = HeadShape { width: 5, hidden: None, classes: CLASSES.len() };
        let numbers = (0..shape.numbers()).map(|_| (3.0 * stream.normal()) as f32).collect();
        let head = Head::new(shape, numbers).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let classes = CLASSES.map(str::to_owned).to_vec();
        let held_out = HeldOut {
            answer: (0..60_u8).map(|n| f64::from(n) / 60.0).collect(),
            right: (0..60).map(|n| n > 20).collect(),
            lac: (0..60_u8).map(|n| f64::from(n) / 60.0).collect(),
            aps: (0..60_u8).map(|n| f64::from(n) / 60.0).collect(),
            label: (0..60).map(|n| n % 3).collect(),
            ..HeldOut::default()
        };
        write_model(&folder.path().join("run"), &projection, &head, classes, Some(held_out));
        vectors[BAD * WIDTH + 4] = f32::NAN;
        let model = HeadModel::new(projection, head).unwrap().folded().unwrap();
        let scene = Self { folder, vectors, model };
        fs::write(scene.path("vectors.npy"), npy(&scene.vectors, WIDTH)).unwrap();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs `calmix predict run` with further arguments, without any `calmix-torch`.
    fn predict(&self, arguments: &[&str]) -> Ended {
        self.predict_as(arguments, &[])
    }

    /// Runs it with the variables of a launcher.
    fn predict_as(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_calmix"));
        command.args(["predict", "run"]).args(arguments).current_dir(&self.folder);
        for name in ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "SLURM_STEP_ID"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        let output = command.env("CALMIX_TORCH", "/nowhere/calmix-torch").output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended {
            code: output.status.code().unwrap(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Runs it with arguments that it refuses.
    fn refuses(&self, arguments: &[&str], reasons: &[&str]) {
        self.fails(2, arguments, reasons);
    }

    fn fails(&self, code: i32, arguments: &[&str], reasons: &[&str]) {
        let ended = self.predict(arguments);
        assert_eq!(ended.code, code, "{}", ended.stderr);
        for reason in reasons {
            assert!(ended.stderr.contains(reason), "{arguments:?}: {}", ended.stderr);
        }
    }
}

/// Vectors as numpy saves them.
fn npy(vectors: &[f32], width: usize) -> Vec<u8> {
    npy_file::floats(&[vectors.len() / width, width], vectors.iter().copied())
}

#[test]
fn vectors_that_are_too_long_have_no_prediction() {
    let scene = Scene::new();
    let mut vectors = scene.vectors.clone();
    vectors[0] = f32::MAX;
    vectors[1] = f32::MIN;
    fs::write(scene.path("huge.npy"), npy(&vectors, WIDTH)).unwrap();
    let ended = scene.predict(&["huge.npy", "--out", "rows.csv"]);
    let rows = scene.read("rows.csv");
    let lines: Vec<&str> = rows.lines().collect();
    assert!(lines[1].contains("the vector is longer than the largest 32-bit number"), "{}", lines[1]);
    assert!(!lines[2].contains("longer"), "{}", lines[2]);
    assert_eq!(lines.len(), 1 + ROWS, "{}", ended.stderr);
    scene.predict(&["vectors.npy", "--out", "others.csv"]);
    // The other rows are as they are without it.
    assert_eq!(lines[2..], scene.read("others.csv").lines().collect::<Vec<_>>()[2..]);
}

#[test]
fn rows_are_those_of_the_head_whatever_the_threads() {
    let scene = Scene::new();
    let arguments = ["vectors.npy", "--probabilities", "--out"];
    let whole = scene.predict(&[&arguments[..], &["one.jsonl", "--threads", "1"]].concat());
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    assert!(whole.stderr.contains("10,000 vectors, "), "{}", whole.stderr);
    assert!(whole.stderr.contains("1 vector could not be read"), "{}", whole.stderr);
    scene.predict(&[&arguments[..], &["three.jsonl", "--threads", "3"]].concat());
    assert!(scene.read("one.jsonl") == scene.read("three.jsonl"));
    let rows: Vec<Value> =
        scene.read("one.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), ROWS);
    for (n, (row, vector)) in rows.iter().zip(scene.vectors.chunks_exact(WIDTH)).enumerate() {
        assert_eq!(row["id"], n.to_string());
        if n == BAD {
            assert!(row["label"].is_null() && row["set"].is_null());
            assert_eq!(row["error"], "number 4 of the vector is NaN");
            continue;
        }
        let mut wanted = vec![0.0; CLASSES.len()];
        let logits = scene.model.logits(vector).unwrap();
        let best = Calibrator::IDENTITY.probabilities_into(&logits, &mut wanted).unwrap();
        let found: Vec<f32> =
            row["probabilities"].as_array().unwrap().iter().map(|p| p.as_f64().unwrap() as f32).collect();
        assert_eq!(found, wanted, "row {n}");
        assert_eq!(row["label"], CLASSES[best]);
        let second = wanted
            .iter()
            .enumerate()
            .filter(|&(class, _)| class != best)
            .map(|(_, &p)| p)
            .fold(0.0, f32::max);
        assert_eq!(row["margin"].as_f64().unwrap() as f32, wanted[best] - second);
        assert!(row["set"].is_array() && row["abstain"].is_boolean(), "{row}");
    }
    // Standard output has the same rows, as a table.
    let table = scene.predict(&["vectors.npy"]);
    assert!(table.stdout.starts_with("id,label,confidence,margin,set,abstain,error\n0,"), "{}", table.stderr);
    assert_eq!(table.stdout.lines().count(), 1 + ROWS);
}

#[test]
fn interrupted_output_continues_at_the_next_row() {
    let scene = Scene::new();
    assert_eq!(scene.predict(&["vectors.npy", "--out", "whole.csv"]).code, 0);
    let whole = scene.read("whole.csv");
    let resume = ["vectors.npy", "--out", "killed.csv", "--resume"];
    assert_eq!(scene.predict(&resume).code, 0);
    for end in [0, 5, 40, 150, whole.len() / 2, whole.len() - 1, whole.len()] {
        fs::write(scene.path("killed.csv"), &whole[..end]).unwrap();
        let ended = scene.predict(&resume);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(scene.read("killed.csv") == whole, "torn at {end}");
    }
    let parquet = ["vectors.npy", "--out", "out.parquet", "--resume", "--part-rows", "3000"];
    assert_eq!(scene.predict(&parquet).code, 0);
    let part = |n: usize| fs::read(scene.path(&format!("out.parquet/part-0000{n}.parquet"))).unwrap();
    let parts = [0, 1, 2, 3].map(part);
    let lines = scene.read("out.parquet.parts.jsonl");
    let first_two: String = lines.split_inclusive('\n').take(2).collect();
    fs::write(scene.path("out.parquet.parts.jsonl"), first_two).unwrap();
    assert_eq!(scene.predict(&parquet).code, 0);
    assert!(parts == [0, 1, 2, 3].map(part) && scene.read("out.parquet.parts.jsonl") == lines);
    // Another number of vectors would be other rows.
    fs::write(scene.path("vectors.npy"), npy(&scene.vectors[WIDTH..], WIDTH)).unwrap();
    scene.refuses(&resume, &["it was written with rows 10000, not 9999"]);
}

#[test]
fn last_lines_say_what_was_predicted() {
    let scene = Scene::new();
    let whole = scene.predict(&["vectors.npy"]);
    let abstains = |line: &str| line.ends_with(",true,");
    let abstained = whole.stdout.lines().filter(|line| abstains(line)).count();
    assert!((1_000..9_000).contains(&abstained), "{abstained} rows");
    let sentence = format!("the model abstains from {},{:03} vectors", abstained / 1_000, abstained % 1_000);
    assert!(whole.stderr.contains(&sentence), "{}", whole.stderr);
    assert!(!whole.stderr.contains("from before"), "{}", whole.stderr);
    // The rows that the model answers are neither unreadable nor abstained from.
    let rows = whole.stdout.lines().skip(1).zip(scene.vectors.chunks_exact(WIDTH));
    let answered: Vec<f32> =
        rows.filter(|(line, _)| line.ends_with(",false,")).flat_map(|(_, vector)| vector).copied().collect();
    fs::write(scene.path("answered.npy"), npy(&answered, WIDTH)).unwrap();
    let told = scene.predict(&["answered.npy"]).stderr;
    assert!(!told.contains("abstains") && !told.contains("could not be read"), "{told}");

    // An output that exists is continued on request alone.
    let out = ["vectors.npy", "--out", "out.csv"];
    let told = scene.predict(&out).stderr;
    assert!(told.contains(" vectors/s, written to out.csv"), "{told}");
    let header_and_rows: String = scene.read("out.csv").split_inclusive('\n').take(1 + 4_000).collect();
    fs::write(scene.path("out.csv"), &header_and_rows).unwrap();
    scene.refuses(&out, &["out.csv: already exists", "add `--resume`"]);
    assert!(scene.read("out.csv") == header_and_rows);
    let told = scene.predict(&[&out[..], &["--resume"]].concat()).stderr;
    assert!(told.contains("6,000 vectors in addition to 4,000 from before, "), "{told}");
}

#[test]
fn json_summary_counts_the_rows() {
    let scene = Scene::new();
    let out = ["vectors.npy", "--out", "out.jsonl", "--json"];
    let ended = scene.predict(&out);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let summary: Value = serde_json::from_str(&ended.stdout).unwrap();
    let rows: Vec<Value> =
        scene.read("out.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let abstained = rows.iter().filter(|row| row["abstain"] == true).count();
    let expected = serde_json::json!({
        "run": "run", "out": "out.jsonl", "format": "jsonl", "finished": true,
        "rows": ROWS, "rows_before": 0, "unread": 1, "abstained": abstained, "mix": null,
        "verdict": {"verdict": "not-checked", "why": "the run kept no reference; runs of earlier versions do not"},
    });
    assert_eq!(summary, expected);
    let again = scene.predict(&[&out[..], &["--resume"]].concat());
    let summary: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((&summary["rows"], &summary["rows_before"]), (&ROWS.into(), &ROWS.into()));
    scene.refuses(&["vectors.npy", "--json"], &["--out"]);
}

#[test]
fn outputs_that_cannot_be_meant_are_refused() {
    let scene = Scene::new();
    let out = |path: &'static str| ["vectors.npy", "--out", path];
    let endings = "calmix writes .csv, .jsonl (JSON lines) and .parquet, not .xlsx";
    scene.refuses(
        &out("p.xlsx"),
        &["p.xlsx: ", endings, "try: --out p.csv, or name the format with --format csv"],
    );
    scene.refuses(
        &out("no/dir/p.csv"),
        &["no/dir/p.csv: the folder no/dir does not exist", "try: mkdir -p no/dir"],
    );
    scene.refuses(&out("vectors.npy/p.csv"), &["vectors.npy is not a folder"]);
    scene.refuses(&out("-"), &["`-` is not one", "rows go to standard output by default"]);
    assert!(!scene.path("p.xlsx").exists() && !scene.path("no").exists() && !scene.path("-").exists());
    // A name without an ending, capitals, and a format that is named.
    for arguments in [&out("rows")[..], &out("ROWS.CSV"), &[&out("p.txt")[..], &["--format", "csv"]].concat()]
    {
        assert_eq!(scene.predict(arguments).code, 0);
        assert!(scene.read(arguments[2]).starts_with("id,label,"), "{arguments:?}");
    }
    assert_eq!(scene.predict(&out("ROWS.PARQUET")).code, 0);
    assert!(scene.path("ROWS.PARQUET/part-00000.parquet").exists());
}

/// Whatever a row depends on is in the note beside the output.
#[test]
fn output_is_continued_with_its_own_options_only() {
    let scene = Scene::new();
    let resume = ["vectors.npy", "--out", "out.jsonl", "--resume"];
    assert_eq!(scene.predict(&resume).code, 0);
    for (options, what) in [
        (&["--coverage", "0.8"][..], "coverage 0.9, not 0.8"),
        (&["--precision", "0.8"], "precision 0.9, not 0.8"),
        (&["--sets", "aps"], "sets \"lac\", not \"aps\""),
        (&["--probabilities"], "probabilities false, not true"),
        (&["--format", "csv"], "format \"jsonl\", not \"csv\""),
    ] {
        scene.refuses(&[&resume[..], options].concat(), &["it was written with ", what]);
    }
    fs::copy(scene.path("vectors.npy"), scene.path("copy.npy")).unwrap();
    scene.refuses(&["copy.npy", "--out", "out.jsonl", "--resume"], &["it was written with paths "]);
}

#[test]
fn shards_are_ranges_of_rows() {
    let scene = Scene::new();
    let whole = scene.predict(&["vectors.npy"]).stdout;
    let mut together = "id,label,confidence,margin,set,abstain,error\n".to_owned();
    for index in 1..=3 {
        let shard = format!("{index}/3");
        let ended = scene.predict(&["vectors.npy", "--out", "out.csv", "--shard", &shard]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let text = scene.read(&format!("out-{index}-of-3.csv"));
        together.extend(text.split_inclusive('\n').skip(1));
    }
    assert!(whole == together);
}

#[test]
fn rank_of_a_launcher_is_its_shard() {
    let scene = Scene::new();
    let whole = scene.predict(&["vectors.npy"]).stdout;
    let mut together = "id,label,confidence,margin,set,abstain,error\n".to_owned();
    for rank in ["0", "1"] {
        let variables = [
            ("RANK", rank),
            ("WORLD_SIZE", "2"),
            ("LOCAL_RANK", rank),
            ("LOCAL_WORLD_SIZE", "2"),
            ("MASTER_ADDR", "localhost"),
            ("MASTER_PORT", "29500"),
        ];
        let ended = scene.predict_as(&["vectors.npy", "--out", "out.csv"], &variables);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let shard = if rank == "0" { "out-1-of-2.csv" } else { "out-2-of-2.csv" };
        together.extend(scene.read(shard).split_inclusive('\n').skip(1));
    }
    assert!(whole == together);
    let ended = scene.predict_as(&["vectors.npy"], &[("RANK", "1")]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("RANK is set, but WORLD_SIZE is not"), "{}", ended.stderr);
}

#[test]
fn ids_name_the_rows_and_a_resumed_output_is_checked_by_them() {
    let scene = Scene::new();
    let table = |last: &str| {
        let columns: Vec<_> = (0..WIDTH).map(|n| format!("embedding_{n}")).collect();
        let mut lines = vec![format!("id,{}", columns.join(","))];
        for (id, vector) in ["a", "b\\c", last].into_iter().zip(scene.vectors.chunks_exact(WIDTH)) {
            let numbers: Vec<_> = vector.iter().map(ToString::to_string).collect();
            lines.push(format!("{id},{}", numbers.join(",")));
        }
        fs::write(scene.path("table.csv"), lines.join("\n") + "\n").unwrap();
    };
    table("d");
    let resume = ["table.csv", "--out", "out.csv", "--resume"];
    let ended = scene.predict(&resume);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let rows = scene.read("out.csv");
    let names: Vec<_> = rows.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(names, ["id", "a", "b\\x5cc", "d"]);
    // The numbers are those of the file that has no ids.
    let whole = scene.predict(&["vectors.npy"]).stdout;
    for (named, numbered) in rows.lines().zip(whole.lines()).skip(1) {
        assert_eq!(named.split_once(',').unwrap().1, numbered.split_once(',').unwrap().1);
    }
    assert_eq!(scene.predict(&resume).code, 0);
    table("e");
    scene.refuses(&resume, &["vector 3 is not the one that was predicted before", "another file"]);
}

#[test]
fn other_inputs_and_changed_files_are_named() {
    let scene = Scene::new();
    fs::write(scene.path("short.npy"), npy(&[0.0; 20], 10)).unwrap();
    scene.refuses(
        &["short.npy"],
        &["short.npy has vectors of 10 numbers, but run was trained on vectors of 12", "try: "],
    );
    fs::write(scene.path("photo.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    scene.refuses(&["photo.png"], &["run was trained on vectors of 12 numbers: ", "photo.png: "]);
    fs::create_dir(scene.path("photos")).unwrap();
    fs::copy(scene.path("photo.png"), scene.path("photos/photo.png")).unwrap();
    scene.refuses(&["photos"], &["run was trained on vectors of 12 numbers: "]);
    scene.refuses(&["vectors.npy", "vectors.npy"], &["from one file"]);
    scene.refuses(&["--list", "vectors.npy"], &["cannot be predicted from a list of paths"]);
    scene.refuses(&["-"], &["cannot be predicted from a list of paths"]);
    scene.refuses(&["vectors.npy", "--device", "cuda"], &["runs on the CPU", "remove --device"]);
    scene.refuses(
        &["vectors.npy", "--features", "--out", "out.parquet"],
        &["--features writes the vector that a network makes of an image", "leave it out"],
    );
    scene.refuses(&["nowhere.npy"], &["nowhere.npy: does not exist"]);
    scene.refuses(&["vectors.npy", "--coverage", "1"], &["--coverage is 1"]);
    let bad = npy(&[f32::INFINITY; 2 * WIDTH], WIDTH);
    fs::write(scene.path("bad.npy"), bad).unwrap();
    assert_eq!(scene.predict(&["bad.npy"]).code, 1);

    let projection = scene.path("run/projection.safetensors");
    let mut bytes = fs::read(&projection).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&projection, bytes).unwrap();
    scene.fails(1, &["vectors.npy"], &["projection.safetensors: ", "model.json has another hash"]);
    fs::remove_file(&projection).unwrap();
    scene.fails(1, &["vectors.npy"], &["projection.safetensors: missing"]);
    let info = scene.read("run/model.json");
    for (from, to) in
        [("\"features\":12", "\"features\":4294967295"), ("\"dimensions\":5", "\"dimensions\":0")]
    {
        fs::write(scene.path("run/model.json"), info.replace(from, to)).unwrap();
        scene.fails(1, &["vectors.npy"], &["model.json: head: "]);
    }
}
