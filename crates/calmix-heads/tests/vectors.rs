//! Runs on vectors of the user, from a file to a finished folder.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use calmix_core::rng::{Domain, Seed};
use calmix_data::dataset::Dataset;
use calmix_data::split::LabelSplit;
use calmix_heads::HeadsError;
use calmix_heads::trainer;
use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::start::{StartContext, prepare_vectors};
use calmix_recipe::Layers;
use calmix_run::read;
use calmix_run::result::Outcome;
use calmix_run::run_folder::RunPlace;
use calmix_testkit::npy_file;
use calmix_testkit::run_bytes::differing;

const ROWS: usize = 300;
const WIDTH: usize = 16;
const CLASSES: [&str; 3] = ["ant", "bee", "cow"];

/// Writes vectors around the centre of their class, all in one view or with two more that are noisier, and the labels of some.
fn made(folder: &Path, views: usize) {
    let mut numbers: Vec<f32> = Vec::new();
    let mut labels = "id,label\n".to_owned();
    for row in 0..ROWS {
        let class = row % CLASSES.len();
        for view in 0..views {
            let mut stream = Seed(3).stream(Domain::Init, view as u64, row as u64);
            numbers.extend((0..WIDTH).map(|n| {
                let centre = if n % CLASSES.len() == class { 1.0 } else { 0.0 };
                (centre + 0.3 * (1 + view) as f64 * stream.normal()) as f32
            }));
        }
        if row < 60 {
            writeln!(labels, "{row},{}", CLASSES[class]).unwrap();
        }
    }
    let shape = if views == 1 { vec![ROWS, WIDTH] } else { vec![ROWS, views, WIDTH] };
    fs::write(folder.join("vectors.npy"), npy_file::floats(&shape, numbers)).unwrap();
    fs::write(folder.join("labels.csv"), labels).unwrap();
}

fn layers(folder: &Path) -> Layers {
    Layers::new()
        .recipe("vectors")
        .set_to("dataset.path", folder.join("vectors.npy").display().to_string())
        .set_to("dataset.labels", folder.join("labels.csv").display().to_string())
        .set("train.steps=60")
        .set("network.folds=3")
        .set("train.threads=2")
}

fn train(layers: &Layers, run: &Path, stop: &AtomicBool) -> Result<Outcome, HeadsError> {
    let quiet = AtomicBool::new(false);
    let place = RunPlace::New(run.to_owned());
    let prepared = prepare_vectors(layers, &place, StartContext::quiet(&quiet))?;
    trainer::start(RunRequest::new(stop), prepared)
}

/// The files in which two runs differ, except those with the paths of a run.
fn differing_files(run: &Path, other: &Path) -> Vec<String> {
    let mut found = differing(run, other);
    found.retain(|name| name != "recipe.toml" && !name.ends_with("source.json"));
    found
}

#[test]
fn vectors_become_a_calibrated_model() {
    let temp = tempfile::tempdir().unwrap();
    for views in [1, 3] {
        let folder = temp.path().join(views.to_string());
        fs::create_dir(&folder).unwrap();
        made(&folder, views);
        let run = folder.join("run");
        let go = AtomicBool::new(false);
        let outcome = train(&layers(&folder), &run, &go).unwrap();
        assert!(matches!(outcome, Outcome::Finished(_)), "{outcome:?}");
        let result = read::result(&run).unwrap().unwrap();
        assert_eq!(result.classes, CLASSES);
        let error = result.evaluations[0].metrics.error;
        assert!(error < 0.1, "{error}");
        let head = read::model_info(&run).unwrap().head.unwrap();
        assert_eq!((head.features, head.backbone.as_str()), (16, ""));
        let environment = read::environment(&run).unwrap();
        assert_eq!((environment.engine.as_str(), environment.device.as_str()), ("no libtorch", "cpu"));
        assert!(!run.join("backbone.safetensors").exists() && !run.join("thumbnails.safetensors").exists());
        let again = trainer::resume(RunRequest::new(&go), &run, None).unwrap();
        assert!(matches!(again, Outcome::AlreadyFinished(_)));
    }
}

/// A run that drew its split again would read the list that has replaced the one it was prepared with.
#[test]
fn split_of_a_run_is_drawn_once() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path(), 1);
    let go = AtomicBool::new(false);
    let prepare = |layers: &Layers, run: &str| {
        let place = RunPlace::New(temp.path().join(run));
        prepare_vectors(layers, &place, StartContext::quiet(&go)).unwrap()
    };
    let few = layers(temp.path()).set("labels.keep=per-class").set("labels.count=9");
    let [first, second] =
        ["1", "2"].map(|seed| prepare(&few.clone().set(&format!("labels.seed={seed}")), seed).split);
    assert_ne!(first.labelled(), second.labelled());
    let list = temp.path().join("list.json");
    first.write(&list).unwrap();
    let given =
        layers(temp.path()).set("labels.keep=given").set_to("labels.file", list.display().to_string());
    let prepared = prepare(&given, "run");
    let table = prepared.dataset.folder().to_owned();
    fs::remove_file(&list).unwrap();
    second.write(&list).unwrap();
    trainer::start(RunRequest::new(&go), prepared).unwrap();
    let dataset = Dataset::open(&table, &temp.path().join("vectors.npy")).unwrap();
    let split = LabelSplit::read(&temp.path().join("run/split.json"), &dataset).unwrap();
    assert_eq!(split.labelled(), first.labelled());
}

#[test]
fn stopped_run_resumes_to_the_same_bytes() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path(), 1);
    let layers = layers(temp.path());
    let go = AtomicBool::new(false);
    let whole = temp.path().join("whole");
    train(&layers, &whole, &go).unwrap();
    let run = temp.path().join("stopped");
    let stopped = train(&layers, &run, &AtomicBool::new(true)).unwrap();
    assert_eq!(stopped, Outcome::Stopped { step: 0 });
    assert!(matches!(trainer::resume(RunRequest::new(&go), &run, None).unwrap(), Outcome::Finished(_)));
    assert_eq!(differing_files(&run, &whole), Vec::<String>::new());
    // A run that was killed before its last file trains its heads again.
    fs::remove_file(run.join("result.json")).unwrap();
    assert!(matches!(trainer::resume(RunRequest::new(&go), &run, None).unwrap(), Outcome::Finished(_)));
    assert_eq!(differing_files(&run, &whole), Vec::<String>::new());
    // With other labels it is another run.
    fs::remove_file(run.join("result.json")).unwrap();
    fs::copy(run.join("split.json"), temp.path().join("split.json")).unwrap();
    let mut split = fs::read_to_string(run.join("split.json")).unwrap();
    split = split.replacen("58,", "", 1);
    fs::write(run.join("split.json"), split).unwrap();
    assert!(trainer::resume(RunRequest::new(&go), &run, None).is_err());
}

#[test]
fn unusable_vectors_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path(), 1);
    let go = AtomicBool::new(false);
    let run = temp.path().join("run");
    let error_of = |layers: Layers| train(&layers, &run, &go).unwrap_err().to_string();
    let views = error_of(layers(temp.path()).set("network.weak_views=1"));
    assert!(views.contains("each sample has 1 vectors"), "{views}");
    fs::remove_dir_all(&run).unwrap();
    fs::write(temp.path().join("labels.csv"), "id,label\n0,ant\n3,ant\n").unwrap();
    let one = error_of(layers(temp.path()));
    assert!(one.contains("there is only one class, `ant`"), "{one}");
    assert!(!run.exists(), "a run that did not start leaves nothing");
    let part =
        layers(temp.path()).set("network.train=all").resolve().unwrap().ready().unwrap_err().to_string();
    assert!(part.contains("only a head can be trained on vectors"), "{part}");
}
