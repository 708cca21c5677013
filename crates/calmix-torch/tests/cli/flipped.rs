//! One bit of a file of a run is wrong: every command refuses the run, or has the result of the honest one.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use calmix::Model;
use calmix::formats::image::Image;
use calmix::heads::trainer;
use calmix::lifecycle::request::RunRequest;
use calmix::model::ModelOptions;
use calmix_testkit::tier;
use calmix_testkit::workspace::folders::files;
use calmix_torch::run::model_info::ModelInfo;
use calmix_torch::train::trainer::{Trainer, evaluate_run};

use super::fixture::{Fixture, copy_folder};
use super::head;

/// Flips of each file with `CALMIX_EXHAUSTIVE=1`, which are all bytes of most files; `CALMIX_FLIPS` sets another number.
const MAX_FLIPS: u32 = 4_096;

/// A command on a run: the text of its result, or of its error.
type Command = fn(&Path) -> Result<String, String>;

fn evaluate(run: &Path) -> Result<String, String> {
    let seen = evaluate_run(run, None, None).map_err(|error| error.to_string())?;
    Ok(format!("{:?} {:?} {:?}", seen.predictions, seen.evaluations, seen.fitted))
}

fn predict(run: &Path) -> Result<String, String> {
    let options = ModelOptions { threads: Some(1), ..ModelOptions::default() };
    let model = Model::load_with(run, &options).map_err(|error| error.to_string())?;
    let pixels: Vec<u8> = (0..3 * 9 * 11).map(|i| (i * 37 % 251) as u8).collect();
    let image = Image::new(9, 11, pixels).unwrap();
    let said = model.predict(&[image]).map_err(|error| error.to_string())?;
    Ok(format!("{:?} {said:?}", model.classes()))
}

/// Goes on to the end; the result is what the run has then. Its files that were there before are not: one is flipped.
fn resume(run: &Path) -> Result<String, String> {
    let stop = AtomicBool::new(false);
    let outcome =
        Trainer::new(RunRequest::new(&stop)).resume(run, None).map_err(|error| error.to_string())?;
    Ok(format!("{outcome:?} {}", made(run)))
}

/// The same for the run of a head.
fn resume_head(run: &Path) -> Result<String, String> {
    let stop = AtomicBool::new(false);
    let outcome = trainer::resume(RunRequest::new(&stop), run, None).map_err(|error| error.to_string())?;
    Ok(format!("{outcome:?} {}", made(run)))
}

/// Hashes of what a run has at its end.
fn made(run: &Path) -> String {
    let made =
        ["model.safetensors", "result.json", "events.jsonl"].map(|name| fs::read(run.join(name)).unwrap());
    format!("{:?}", made.map(|bytes| ModelInfo::hash(&bytes)))
}

/// Where a file is flipped.
fn places(length: usize, usual: u32) -> Vec<usize> {
    let count = length.min(tier::number("CALMIX_FLIPS", usual, MAX_FLIPS) as usize);
    // In the middle of as many equal pieces.
    (0..count).map(|n| (2 * n + 1) * length / (2 * count)).collect()
}

/// Flips bits of every file of `honest` for which `is_tried` holds, in a copy, and returns what was neither refused nor as
/// with the honest run.
fn wrong(honest: &Path, command: Command, usual: u32, is_tried: impl Fn(&str) -> bool) -> Vec<String> {
    let copy = honest.with_file_name("flipped");
    let fresh = || {
        let _ = fs::remove_dir_all(&copy);
        copy_folder(honest, &copy);
    };
    fresh();
    let expected = command(&copy).unwrap();
    let mut wrong = Vec::new();
    let tried: Vec<PathBuf> =
        files(honest).into_iter().filter(|name| is_tried(name.to_str().unwrap())).collect();
    assert!(!tried.is_empty());
    for name in tried {
        let bytes = fs::read(honest.join(&name)).unwrap();
        for place in places(bytes.len(), usual) {
            fresh();
            let mut flipped = bytes.clone();
            // The lowest bit makes another digit of a digit, and another letter of a letter.
            flipped[place] ^= 1;
            fs::write(copy.join(&name), &flipped).unwrap();
            let end = bytes.len().min(place + 20);
            let around = String::from_utf8_lossy(&bytes[place.saturating_sub(20)..end]).replace('\n', "⏎");
            let case = format!("{}, byte {place} in {around:?}", name.display());
            match catch_unwind(AssertUnwindSafe(|| command(&copy))) {
                Err(_) => wrong.push(format!("{case}: panics")),
                Ok(Ok(found)) if found != expected => wrong.push(format!("{case}: another result")),
                Ok(Err(message)) if message.is_empty() => wrong.push(format!("{case}: no message")),
                Ok(_) => {}
            }
        }
    }
    wrong
}

#[test]
fn flipped_bit_does_not_change_an_evaluation() {
    let workspace = Fixture::Garments.copy();
    let wrong = wrong(&workspace.path("first"), evaluate, 2, |_| true);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn flipped_bit_does_not_change_a_prediction() {
    let workspace = Fixture::Photos.copy();
    let wrong = wrong(&workspace.path("run"), predict, 40, |name| name.starts_with("model."));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A head's model is four files.
#[test]
fn flipped_bit_does_not_change_a_prediction_of_a_head() {
    let workspace = Fixture::Weights.copy();
    head::train(&workspace, "run", &[]).with_code(0);
    let is_model = |name: &str| {
        ["model.", "backbone.", "projection."].iter().any(|beginning| name.starts_with(beginning))
    };
    let wrong = wrong(&workspace.path("run"), predict, 10, is_model);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A run that was killed after its first checkpoint.
#[test]
fn flipped_bit_does_not_change_a_resumed_run() {
    let workspace = Fixture::Garments.copy();
    let run = workspace.path("first");
    fs::remove_dir_all(run.join("checkpoints/step-000000008")).unwrap();
    for name in ["model.safetensors", "model.json", "result.json", "margins.json", "thumbnails.safetensors"] {
        fs::remove_file(run.join(name)).unwrap();
    }
    let wrong = wrong(&run, resume, 1, |_| true);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A run of a head that was killed before its end: a page of features that is damaged is computed again.
#[test]
fn flipped_bit_of_features_does_not_change_a_head() {
    let workspace = Fixture::Head.copy();
    let run = workspace.path("run");
    fs::remove_file(run.join("result.json")).unwrap();
    let wrong = wrong(&run, resume_head, 2, |name| name.starts_with("features/"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
