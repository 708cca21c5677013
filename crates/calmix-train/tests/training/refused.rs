//! Runs that are refused, and their error messages.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use calmix_io::error::ErrorKind;
use calmix_lifecycle::LifecycleError;
use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::start::{Draft, RunPlace, StartContext, prepare_run};
use calmix_recipe::device::Device;
use calmix_run::error::RunError;
use calmix_testkit::run_bytes::{bytes, differing};
use calmix_testkit::tiny_images::dataset;
use calmix_train::train_folder;
use calmix_train::trainer::{Outcome, TrainError, Trainer, evaluate_run};
use serde_json::Value;

use crate::made::{Bench, layers, resume};

/// Whether the samples of the run are not those it began with, in a certain way.
fn is_of_samples(error: &TrainError, is_so: impl Fn(&LifecycleError) -> bool) -> bool {
    matches!(error, TrainError::Lifecycle(error) if is_so(error))
}

#[test]
fn a_changed_recipe_is_refused_key_by_key() {
    let bench = Bench::new();
    let folder = bench.train_until("run", 5, &[]);
    let before = bytes(&folder);
    let stop = AtomicBool::new(false);
    let other = bench.recipe(&["optimiser.lr=0.5", "train.batch=5", "checkpoint.every=3"]);
    let error = Trainer::new(RunRequest::new(&stop)).resume(&folder, Some(&other)).unwrap_err();
    let TrainError::Lifecycle(inner) = &error else { panic!("{error}") };
    let LifecycleError::Changed { changes, .. } = inner else { panic!("{error}") };
    assert_eq!(
        changes.iter().map(|change| &*change.path).collect::<Vec<_>>(),
        ["train.batch", "optimiser.lr"]
    );
    let sentence = error.to_string();
    for part in [
        "optimiser.lr was 0.03 and would be 0.5",
        "train.batch was 6 and would be 5",
        "start a new run",
        "Keys that can change: ",
        "checkpoint.every",
    ] {
        assert!(sentence.contains(part), "{sentence}");
    }
    assert!(!sentence.contains("checkpoint.every was"), "{sentence}");
    assert_eq!(bytes(&folder), before);

    // The same by hand, in the run's own recipe.
    let path = folder.join("recipe.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("lr = 0.03", "lr = 0.04")).unwrap();
    let error = resume(&folder).unwrap_err().to_string();
    assert!(error.contains("optimiser.lr was 0.03 and would be 0.04"), "{error}");
    fs::write(&path, text).unwrap();

    // Keys that can change do not change the result.
    let whole = bench.train("whole", &[]);
    let recipe = bench.recipe(&["checkpoint.every=3", "loader.workers=2", "train.precision=auto"]);
    assert!(matches!(
        Trainer::new(RunRequest::new(&stop)).resume(&folder, Some(&recipe)).unwrap(),
        Outcome::Finished(_)
    ));
    let changed =
        ["checkpoints/step-000000012/MANIFEST", "checkpoints/step-000000012/recipe.toml", "recipe.toml"];
    assert_eq!(differing(&whole, &folder), changed);
}

#[test]
fn another_dataset_is_refused() {
    let bench = Bench::new();
    let folder = bench.train_until("run", 5, &[]);
    let data = bench.data();
    let labels = data.join("train-labels-idx1-ubyte");
    let mut bytes = fs::read(&labels).unwrap();
    bytes.swap(8, 9);
    fs::write(&labels, bytes).unwrap();
    fs::remove_dir_all(folder.join("prepared")).unwrap();
    let error = resume(&folder).unwrap_err();
    assert!(is_of_samples(&error, |error| matches!(error, LifecycleError::OtherDataset { .. })), "{error}");
    assert!(error.to_string().contains("restore the files"), "{error}");
    // Put back, it goes on.
    fs::remove_dir_all(folder.join("prepared")).unwrap();
    dataset(&data);
    assert!(matches!(resume(&folder).unwrap(), Outcome::Finished(_)));
}

/// Puts another sample of the same class into the split, which stays a sound one.
fn swap_labelled_sample(folder: &Path) {
    let path = folder.join("split.json");
    let mut split: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let ids =
        |list: &Value| -> Vec<u64> { list.as_array().unwrap().iter().filter_map(Value::as_u64).collect() };
    let validation = ids(&split["validation"]);
    let mut labelled = ids(&split["labelled"]);
    let first = labelled[0];
    let other =
        (0..120).find(|id| id % 10 == first % 10 && !labelled.contains(id) && !validation.contains(id));
    labelled[0] = other.unwrap();
    labelled.sort_unstable();
    split["labelled"] = labelled.into();
    fs::write(&path, split.to_string()).unwrap();
}

#[test]
fn folder_with_a_path_that_is_not_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join(std::ffi::OsStr::from_bytes(b"photos\xff"));
    fs::create_dir(&data).unwrap();
    let error = train_folder(&data).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mistake);
    assert!(error.to_string().contains("its path is not UTF-8; rename the folder"), "{error}");
}

#[test]
fn changed_split_is_refused() {
    let bench = Bench::new();
    let settings = ["method.mixup.pairing=none"];
    let stopped = bench.train_until("stopped", 5, &settings);
    let created = bench.folder("created");
    let stop = AtomicBool::new(false);
    // An empty file is a recipe of the user's.
    let layers = layers(&bench.data(), &settings).text(Path::new("mine.toml"), "");
    let draft = Draft::new(layers, || Device::Cpu).unwrap();
    let place = RunPlace::New(created.clone());
    let prepared = prepare_run(&draft, &place, StartContext::quiet(&stop)).unwrap();
    Trainer::new(RunRequest::new(&stop)).create(prepared, 1).unwrap();
    for folder in [stopped, created] {
        let whole = fs::read(folder.join("split.json")).unwrap();
        swap_labelled_sample(&folder);
        let error = resume(&folder).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Mistake
                && is_of_samples(&error, |error| matches!(error, LifecycleError::OtherSplit { .. })),
            "{error}"
        );
        assert!(error.to_string().contains("restore split.json"), "{error}");
        if folder.ends_with("stopped") {
            let error = evaluate_run(&folder, None, None).unwrap_err();
            assert!(
                is_of_samples(&error, |error| matches!(error, LifecycleError::OtherSplit { .. })),
                "{error}"
            );
        }
        fs::write(folder.join("split.json"), whole).unwrap();
        assert!(matches!(resume(&folder).unwrap(), Outcome::Finished(_)));
    }
}

#[test]
fn flipped_labels_are_refused() {
    let bench = Bench::new();
    let folder = bench.train_until("run", 5, &[]);
    let path = folder.join("prepared/samples.bin");
    let whole = fs::read(&path).unwrap();
    let mut table = whole.clone();
    for record in table.chunks_mut(24) {
        record[20] = 9 - record[20];
    }
    fs::write(&path, table).unwrap();
    for error in
        [resume(&folder).map(drop).unwrap_err(), evaluate_run(&folder, None, None).map(drop).unwrap_err()]
    {
        assert!(error.to_string().contains("samples.bin"), "{error}");
    }
    fs::write(&path, whole).unwrap();
    assert!(matches!(resume(&folder).unwrap(), Outcome::Finished(_)));
}

#[test]
fn folders_without_runs_or_in_use_are_refused() {
    let bench = Bench::new();
    let error = resume(&bench.folder("nothing")).unwrap_err();
    assert!(matches!(error, TrainError::Lifecycle(LifecycleError::Run(RunError::NoRun { .. }))), "{error}");
    let folder = bench.train("run", &[]);
    let again = bench.start("run", &[]).unwrap_err();
    assert!(matches!(again, TrainError::Lifecycle(LifecycleError::Run(RunError::Exists { .. }))), "{again}");
    let error = bench.start("new", &["train.micro_batches=2", "train.batch_norm=sync"]).unwrap_err();
    assert!(error.to_string().contains("is not supported with several micro-batches"), "{error}");
    let error = bench.start("new", &["network.train=head", "network.weights=some"]).unwrap_err();
    assert!(error.to_string().contains("`calmix train` or `calmix resume`"), "{error}");
    // Killed before its recipe was written: begun again, but not resumed.
    fs::remove_file(folder.join("recipe.toml")).unwrap();
    let error = resume(&folder).unwrap_err().to_string();
    assert!(error.contains("stopped before its first step"), "{error}");
}

#[test]
fn run_killed_before_its_start_can_start_again() {
    let bench = Bench::new();
    let (whole, folder) = (bench.train("whole", &[]), bench.folder("run"));
    drop(calmix_run::run::Run::create(&folder).unwrap());
    // As a kill while the dataset was prepared leaves it.
    fs::create_dir(folder.join(".preparing-x1")).unwrap();
    fs::copy(whole.join("split.json"), folder.join("split.json")).unwrap();
    let run = bench.train("run", &[]);
    assert_eq!(differing(&whole, &run), Vec::<String>::new());
}
