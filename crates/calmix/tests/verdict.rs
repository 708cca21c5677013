//! The verdict with which `calmix predict` ends, as a user sees it: on vectors like those of training, moved, and in another mix of
//! classes.

use std::fs;
use std::path::Path;

use calmix_core::rng::{Domain, Seed};
use calmix_testkit::npy_file;
use serde_json::Value;

use crate::planted::{self, WIDTH, calmix, text, write_labels};

/// Rows of the training file: 2,910 have no label, so 291 are kept as the reference.
const ROWS: usize = 3_000;
const LABELS: usize = 90;

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    /// A folder with a trained run.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scene = Self { folder };
        scene.write("train.npy", 0..ROWS, 0.0);
        write_labels(&scene.path().join("labels.csv"), 0, LABELS);
        let train = ["train", "--features", "train.npy", "--labels", "labels.csv", "--run-dir", "run"];
        let trained =
            scene.run(&[&train[..], &["--set", "network.folds=4", "--set", "evaluate.bootstrap=0"]].concat());
        assert!(trained.contains("model written"), "{trained}");
        // Of 3,000 to 3,600 rows, in which classes take turns.
        scene.write("same.npy", ROWS..ROWS + 600, 0.0);
        scene.write("moved.npy", ROWS..ROWS + 300, 0.6);
        scene.write("mix.npy", (ROWS..ROWS + 1_500).filter(|row| row % 3 == 0 || row % 15 == 1), 0.0);
        scene.write("few.npy", ROWS..ROWS + 20, 0.0);
        scene
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes rows, moved in every direction.
    fn write(&self, name: &str, rows: impl Iterator<Item = usize>, by: f32) {
        let numbers: Vec<f32> = rows.flat_map(planted::vector).map(|number| number + by).collect();
        let file = npy_file::floats(&[numbers.len() / WIDTH, WIDTH], numbers);
        fs::write(self.path().join(name), file).unwrap();
    }

    /// Runs a command that must succeed; returns what it printed.
    fn run(&self, arguments: &[&str]) -> String {
        let output = calmix(self.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output));
        text(&output)
    }

    fn note(&self, name: &str) -> Value {
        let file = self.path().join(format!("{name}.predict.json"));
        serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
    }
}

/// A row of the class `class`. The numbers of `planted::vector` are too regular for the means of few rows.
fn random_row(class: usize, row: usize) -> Vec<f32> {
    let mut stream = Seed(1).stream(Domain::Bootstrap, class as u64, row as u64);
    let centre = |n: usize| if n % 3 == class { 1.0 } else { 0.0 };
    (0..WIDTH).map(|n| centre(n) + 3.0 * (stream.uniform() as f32 - 0.5)).collect()
}

/// 90 labels of classes in turns, with 2,600 unlabelled rows that are like them, in another mix of classes, or moved.
#[test]
fn pool_unlike_the_labels_is_named() {
    // The classes of the unlabelled rows in turns; how far they have moved; what is said.
    let pools: [(&[usize], f32, &str, &str); 3] = [
        (&[0, 1, 2], 0.0, "alike", ""),
        (&[0, 0, 0, 0, 1], 0.0, "mix-differs", "predict --mix estimate"),
        (&[0, 1, 2], 0.6, "unlike", "unlabelled samples that are drawn at random"),
    ];
    for (classes, by, word, sentence) in pools {
        let folder = tempfile::tempdir().unwrap();
        let scene = Scene { folder };
        let mut numbers: Vec<f32> = (0..LABELS).flat_map(|row| random_row(row % 3, row)).collect();
        let pool = (LABELS..LABELS + 2_600).flat_map(|row| random_row(classes[row % classes.len()], row));
        numbers.extend(pool.map(|number| number + by));
        let file = npy_file::floats(&[numbers.len() / WIDTH, WIDTH], numbers);
        fs::write(scene.path().join("train.npy"), file).unwrap();
        write_labels(&scene.path().join("labels.csv"), 0, LABELS);
        let train = ["train", "--features", "train.npy", "--labels", "labels.csv", "--run-dir", "run"];
        let trained =
            scene.run(&[&train[..], &["--set", "network.folds=4", "--set", "evaluate.bootstrap=0"]].concat());
        // Without the line breaks of the terminal.
        let trained = trained.split_whitespace().collect::<Vec<_>>().join(" ");
        let result = fs::read(scene.path().join("run/result.json")).unwrap();
        let result: Value = serde_json::from_slice(&result).unwrap();
        let pool = &result["pool"];
        assert_eq!((&pool["verdict"], &pool["unlabelled"]), (&word.into(), &260.into()), "{pool}");
        // Near-duplicates count once.
        assert!((85..=90).contains(&pool["labels"].as_u64().unwrap()), "{pool}");
        assert!(trained.contains(sentence), "{word}: {trained}");
        let sentences =
            ["another mix of classes than the labels", "The labels are unlike the unlabelled samples"];
        let said = sentences.iter().filter(|sentence| trained.contains(*sentence)).count();
        assert_eq!(said, usize::from(word != "alike"), "{trained}");
    }
}

#[test]
fn verdict_follows_the_samples() {
    let scene = Scene::new();
    for (name, word, sentence) in [
        ("same", "applies", "guarantees apply: these 600 vectors are like those"),
        (
            "moved",
            "void",
            "guarantees void: these vectors as a whole are unlike those of training, though few stand out",
        ),
        ("mix", "mix-differs", "the mix of classes differs from that of the held-out labels"),
        ("few", "not-checked", "guarantees not checked: 20 rows are too few: at least 30 are compared"),
    ] {
        let out = format!("{name}.csv");
        let said = scene.run(&["predict", "run", &format!("{name}.npy"), "--out", &out]);
        assert!(said.contains(sentence), "{name}: {said}");
        let verdicts =
            ["guarantees apply", "mix of classes differs", "guarantees void", "guarantees not checked"];
        let found = verdicts.iter().filter(|verdict| said.contains(**verdict)).count();
        assert_eq!(found, 1, "exactly one verdict: {said}");
        let note = scene.note(&out);
        assert_eq!(note["verdict"]["verdict"], word, "{note}");
        assert!(!scene.path().join(format!("{out}.sums.jsonl")).exists());
    }
    // Rows do not change, and the verdict does not depend on their order or on threads.
    let json =
        scene.run(&["predict", "run", "moved.npy", "--out", "moved.jsonl", "--json", "--threads", "2"]);
    let json: Value = serde_json::from_str(&json[json.find('{').unwrap()..]).unwrap();
    assert_eq!(json["verdict"], scene.note("moved.csv")["verdict"]);
    assert!(json["verdict"]["strangest"].as_array().unwrap().len() == 5);
    scene.write("far.npy", ROWS..ROWS + 300, 4.0);
    scene.run(&["predict", "run", "far.npy", "--out", "far.jsonl", "--unusual"]);
    let rows = fs::read_to_string(scene.path().join("far.jsonl")).unwrap();
    let unusual =
        rows.lines().map(|row| serde_json::from_str::<Value>(row).unwrap()["unusual"].as_f64().unwrap());
    let strange = unusual.filter(|&p| p <= 0.1).count();
    assert!(strange > 60, "{strange} of 300 far rows are among the strangest tenth");
    let csv = fs::read_to_string(scene.path().join("moved.csv")).unwrap();
    assert!(csv.starts_with("id,label,confidence,margin,set,abstain,error\n"), "{csv}");
}

#[test]
fn another_mix_is_adapted_to() {
    let scene = Scene::new();
    let predict = |more: &[&str]| scene.run(&[&["predict", "run"][..], more].concat());
    // 500 ants and 100 bees, in turns; 90 held-out labels in equal numbers.
    let said = predict(&["mix.npy", "--mix", "estimate", "--out", "estimated.csv"]);
    assert!(said.contains("adapted to another mix of classes") && said.contains("ant: 8"), "{said}");
    assert!(said.contains("guarantees are estimates for these 600 vectors"), "{said}");
    let note = scene.note("estimated.csv");
    let shares = &note["mix"]["shares"];
    let share = |class: &str| shares[class].as_f64().unwrap();
    assert!((share("ant") - 0.833).abs() < 0.08 && share("cow") < 0.06, "{shares}");
    let low = note["mix"]["intervals"]["ant"][0].as_f64().unwrap();
    assert!(low > 0.6 && low < share("ant"), "{note}");
    // The sums are those of the model, whatever its predictions are adapted to.
    predict(&["mix.npy", "--out", "plain.csv"]);
    assert_eq!(note["sums"], scene.note("plain.csv")["sums"]);

    let shares = "class,share\nant,0.8333\nbee,0.1667\ncow,0\n";
    fs::write(scene.path().join("shares.csv"), shares).unwrap();
    let said = predict(&["mix.npy", "--mix", "shares.csv", "--out", "known.csv"]);
    assert!(
        said.contains("guarantees apply to these 600 vectors, whose mix of classes is as given"),
        "{said}"
    );
    let errors = |name: &str| {
        let rows = fs::read_to_string(scene.path().join(name)).unwrap();
        let labels = rows.lines().skip(1).map(|row| row.split(',').nth(1).unwrap().to_owned());
        let truth = (ROWS..ROWS + 1_500).filter(|row| row % 3 == 0 || row % 15 == 1).map(planted::class);
        labels.zip(truth).filter(|(label, truth)| label != truth).count()
    };
    let [plain, estimated, known] = ["plain.csv", "estimated.csv", "known.csv"].map(errors);
    assert!(estimated < plain && known < plain, "{plain} {estimated} {known}");

    let said = predict(&["same.npy", "--mix", "estimate", "--out", "same.csv"]);
    assert!(said.contains("not adapted") && said.contains("guarantees apply: these"), "{said}");
    let said = predict(&["moved.npy", "--mix", "estimate", "--out", "moved.csv"]);
    assert!(said.contains("no mix of classes explains") && said.contains("guarantees void"), "{said}");
    for (more, reason) in [
        (
            &["same.npy", "--mix", "estimate", "--shard", "1/2", "--out", "shard.csv"][..],
            "a shard has only some",
        ),
        (&["same.npy", "--mix", "estimate", "--sets", "aps"], "not of aps"),
        (&["same.npy", "--mix", "labels.csv"], "labels.csv: line 1: the columns are not class,share"),
        (&["same.npy", "--mix", "nothing.csv"], "nothing.csv"),
    ] {
        let output = calmix(scene.path(), &[&["predict", "run"][..], more].concat());
        assert!(
            output.status.code() == Some(2) && text(&output).contains(reason),
            "{more:?}: {}",
            text(&output)
        );
    }
}

#[test]
fn missing_and_damaged_references() {
    let scene = Scene::new();
    let reference = scene.path().join("run/reference.safetensors");
    let whole = fs::read(&reference).unwrap();
    assert!(whole.len() < 2 << 20);
    let predict = ["predict", "run", "same.npy"];
    let rows = scene.run(&predict);
    let lines = |said: &str| said.lines().filter(|line| line.starts_with(char::is_numeric)).count();
    fs::remove_file(&reference).unwrap();
    let without = scene.run(&predict);
    assert!(without.contains("not checked: reference.safetensors is missing"), "{without}");
    assert_eq!(lines(&rows), lines(&without));
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    fs::write(&reference, &changed).unwrap();
    let said = scene.run(&predict);
    assert!(said.contains("is not the file that model.json describes"), "{said}");
    // With the right hash, its content is checked.
    for damaged in [b"nothing".to_vec(), whole[..whole.len() - 4].to_vec()] {
        fs::write(&reference, &damaged).unwrap();
        let model = scene.path().join("run/model.json");
        let honest = fs::read_to_string(&model).unwrap();
        let mut info: Value = serde_json::from_str(&honest).unwrap();
        info["reference"] = blake3::hash(&damaged).to_hex().to_string().into();
        fs::write(&model, info.to_string()).unwrap();
        let output = calmix(scene.path(), &predict);
        assert!(
            output.status.code() != Some(0) && text(&output).contains("not a reference"),
            "{}",
            text(&output)
        );
        fs::write(&model, honest).unwrap();
    }
    fs::write(&reference, &whole).unwrap();
    assert!(scene.run(&predict).contains("guarantees apply"));
    // The reference follows `calmix calibrate`, and can be exported.
    write_labels(&scene.path().join("new-labels.csv"), ROWS, 300);
    scene.run(&["calibrate", "run", "--on", "moved.npy", "--labels", "new-labels.csv"]);
    assert_ne!(fs::read(&reference).unwrap(), whole);
    assert!(scene.run(&["predict", "run", "moved.npy"]).contains("guarantees void"));
    scene.run(&["export", "run", "--to", "exported"]);
    assert_eq!(
        fs::read(scene.path().join("exported/reference.safetensors")).unwrap(),
        fs::read(&reference).unwrap()
    );
}
