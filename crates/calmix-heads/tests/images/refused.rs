//! Runs of heads that are refused, and their error messages.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use calmix_heads::HeadsError;
use calmix_heads::evaluate_head::evaluate_head_run;
use calmix_heads::trainer;
use calmix_io::error::ErrorKind;
use calmix_lifecycle::LifecycleError;
use calmix_lifecycle::request::RunRequest;
use calmix_run::error::RunError;
use calmix_testkit::run_bytes::bytes;

use super::made::{Bench, resume};

fn refused(bench: &Bench, name: &str, settings: &[&str]) -> String {
    let stop = AtomicBool::new(false);
    let error = bench.start(RunRequest::new(&stop), name, settings).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mistake, "{error}");
    assert!(!bench.folder(name).exists(), "{error}");
    error.to_string()
}

#[test]
fn backbone_of_another_network_is_refused_first() {
    let bench = Bench::new();
    let file = bench.folder("backbone.safetensors").display().to_string();
    let error = refused(&bench, "run", &["network.name=wrn-16-1"]);
    assert!(error.starts_with(&file), "{error}");
    assert!(error.contains("missing") && error.contains("network.name"), "{error}");
    let error = refused(&bench, "run", &["network.weights_hash=00"]);
    assert!(error.contains("but network.weights_hash is 00: this is a different file"), "{error}");
    let text = bench.folder("text.safetensors");
    fs::write(&text, b"weights").unwrap();
    let weights = format!("network.weights={}", text.display());
    assert!(refused(&bench, "run", &[&weights]).contains("not a safetensors file"));
}

#[test]
fn precision_device_and_network_of_a_head_are_checked() {
    let bench = Bench::new();
    assert!(refused(&bench, "run", &["train.precision=bf16"]).contains("runs in f32 only"));
    assert!(refused(&bench, "run", &["train.device=mps"]).contains("--device cpu"));
    assert!(refused(&bench, "run", &["network.train=all"]).contains("whole network"));
}

/// Replaces a line of the recipe of a run.
fn rewrite(run: &Path, from: &str, to: &str) {
    let path = run.join("recipe.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(&path, text.replace(from, to)).unwrap();
}

#[test]
fn run_with_features_in_bf16_is_refused() {
    let bench = Bench::new();
    let run = bench.train("run", &[]);
    rewrite(&run, "precision = \"f32\"", "precision = \"bf16\"");
    let errors =
        [resume(&run).unwrap_err(), evaluate_head_run(&run, None, &AtomicBool::new(false)).unwrap_err()];
    for error in errors {
        assert!(matches!(error, HeadsError::OtherPrecision { .. }), "{error}");
        let sentence = error.to_string();
        assert!(sentence.starts_with(&run.display().to_string()), "{sentence}");
        assert!(sentence.contains("bf16") && sentence.contains("train it again"), "{sentence}");
    }
}

#[test]
fn changed_run_of_a_head_is_refused() {
    let bench = Bench::new();
    let (run, _) = bench.stop_at("run", 1, &[]);
    let before = bytes(&run);
    let stop = AtomicBool::new(false);
    let other = bench.recipe(&["optimiser.lr=0.5"]);
    let error = trainer::resume(RunRequest::new(&stop), &run, Some(other)).unwrap_err();
    assert!(matches!(error, HeadsError::Lifecycle(LifecycleError::Changed { .. })), "{error}");
    assert!(error.to_string().contains("optimiser.lr was 1.0 and would be 0.5"), "{error}");
    assert_eq!(bytes(&run), before);
    // Another label of the same class would be trained on.
    let split = fs::read(run.join("split.json")).unwrap();
    fs::write(run.join("split.json"), String::from_utf8_lossy(&split).replacen("0,", "10,", 1)).unwrap();
    assert!(resume(&run).is_err());
    fs::write(run.join("split.json"), split).unwrap();
    fs::remove_file(run.join("recipe.toml")).unwrap();
    assert!(matches!(resume(&run).unwrap_err(), HeadsError::Lifecycle(LifecycleError::NotBegun { .. })));
    let error = resume(&bench.folder("nothing")).unwrap_err();
    assert!(matches!(error, HeadsError::Lifecycle(LifecycleError::Run(RunError::NoRun { .. }))), "{error}");
}

#[test]
fn unfinished_run_is_not_evaluated() {
    let bench = Bench::new();
    let (run, _) = bench.stop_at("run", 1, &[]);
    let error = evaluate_head_run(&run, None, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, HeadsError::Unfinished { .. }), "{error}");
}
