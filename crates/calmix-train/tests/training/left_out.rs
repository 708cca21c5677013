//! Negative controls: if any part of a checkpoint is left out, the comparison of runs notices it.

use std::fs;
use std::path::Path;

use calmix_run::checkpoint::{CheckpointContents, Identity, newest};
use calmix_run::run::Run;
use calmix_testkit::run_bytes::differing;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde_json::Value;

use crate::made::{Bench, checkpoint, resume};

/// The step that the run was stopped after.
const STOPPED: u64 = 7;

type CheckpointFiles = Vec<(String, Vec<u8>)>;

/// Makes the newest checkpoint again with other parts, through the same functions that made it.
fn rewrite(folder: &Path, step: u64, change: impl FnOnce(&mut CheckpointFiles)) {
    let run = Run::open(folder).unwrap();
    let found = newest(run.paths().checkpoints()).unwrap().unwrap().checkpoint;
    let manifest = found.manifest().clone();
    let mut parts: CheckpointFiles =
        manifest.files.iter().map(|file| (file.name.clone(), found.bytes(&file.name).unwrap())).collect();
    change(&mut parts);
    fs::remove_dir_all(checkpoint(folder, STOPPED)).unwrap();
    let identity: Identity = manifest.identity;
    let parts = parts.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let snapshot = CheckpointContents { step, identity, journal: manifest.journal, parts };
    run.checkpoints(2).save(&snapshot).unwrap();
}

fn part<'a>(parts: &'a mut CheckpointFiles, name: &str) -> &'a mut Vec<u8> {
    &mut parts.iter_mut().find(|(part, _)| part == name).unwrap().1
}

/// Sets the numbers of some tensors of a file to what `value` makes of their names.
fn reset(file: &mut Vec<u8>, value: impl Fn(&str) -> Option<u8>) {
    let tensors = SafeTensors::deserialize(file).unwrap();
    let mut all: Vec<_> = tensors
        .iter()
        .map(|(name, view)| (name.to_owned(), view.dtype(), view.shape().to_vec(), view.data().to_vec()))
        .collect();
    let mut touched = 0;
    for (name, dtype, _, bytes) in &mut all {
        let Some(value) = value(name) else { continue };
        touched += 1;
        let fresh: Vec<u8> = match dtype {
            safetensors::Dtype::F32 => f32::from(value.cast_signed()).to_le_bytes().into(),
            safetensors::Dtype::F64 => f64::from(value.cast_signed()).to_le_bytes().into(),
            safetensors::Dtype::I32 => i32::from(value.cast_signed()).to_le_bytes().into(),
            safetensors::Dtype::U32 => u32::from(value).to_le_bytes().into(),
            _ => u64::from(value).to_le_bytes().into(),
        };
        let count = bytes.len() / fresh.len();
        *bytes = fresh.repeat(count);
    }
    assert!(touched > 0);
    let views = all.iter().map(|(name, dtype, shape, bytes)| {
        (name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).unwrap())
    });
    *file = safetensors::serialize(views.collect::<Vec<_>>(), None).unwrap();
}

fn edit(parts: &mut CheckpointFiles, change: impl FnOnce(&mut Value)) {
    let state = part(parts, "state.json");
    let mut value: Value = serde_json::from_slice(state).unwrap();
    change(&mut value);
    *state = serde_json::to_vec(&value).unwrap();
}

struct Case {
    bench: Bench,
    settings: Vec<&'static str>,
}

impl Case {
    fn new(settings: &[&'static str]) -> Self {
        Self { bench: Bench::new(), settings: settings.to_vec() }
    }

    /// Files that differ from those of the uninterrupted run.
    fn differing(&self, name: &str, step: u64, change: impl FnOnce(&mut CheckpointFiles)) -> Vec<String> {
        let whole = self.bench.folder("whole");
        if !whole.exists() {
            self.bench.train("whole", &self.settings);
        }
        let folder = self.bench.train_until(name, STOPPED, &self.settings);
        rewrite(&folder, step, change);
        resume(&folder).unwrap();
        differing(&whole, &folder)
    }
}

fn statistics(name: &str) -> Option<u8> {
    match name {
        _ if name.ends_with("running_mean") => Some(0),
        _ if name.ends_with("running_var") => Some(1),
        _ => None,
    }
}

#[test]
fn every_omission_from_a_checkpoint_is_noticed() {
    let case = Case::new(&["method.base=flexmatch", "method.flexmatch.threshold=0.2", "selection=median"]);
    // The control of the controls: rewritten as it was, nothing differs.
    assert_eq!(case.differing("same", STOPPED, |_| ()), Vec::<String>::new());

    // Live weights and their average are networks before training, of which a zero head is one.
    let weights = |name: &str| (name == "fc.weight").then_some(0);
    let seen = |name: &str, change: &dyn Fn(&mut CheckpointFiles)| {
        let differing = case.differing(name, STOPPED, |parts| change(parts));
        assert!(differing.iter().any(|file| file.starts_with("checkpoints/")), "{name}: {differing:?}");
        differing
    };
    let live = seen("live weights", &|parts| reset(part(parts, "live.safetensors"), weights));
    let ema = seen("EMA", &|parts| reset(part(parts, "ema.safetensors"), weights));
    let momentum = seen("momentum", &|parts| reset(part(parts, "momentum.safetensors"), |_| Some(0)));
    let statistics = seen("BN statistics", &|parts| {
        reset(part(parts, "live.safetensors"), statistics);
        reset(part(parts, "ema.safetensors"), statistics);
    });
    let margins = seen("margins", &|parts| {
        let fresh =
            |name: &str| (name.starts_with("apm") || name == "aum" || name == "aum.visits").then_some(0);
        reset(part(parts, "samples-0.safetensors"), fresh);
    });
    let labels = seen("FlexMatch's labels", &|parts| {
        // −1.
        reset(part(parts, "samples-0.safetensors"), |name| (name == "selected").then_some(u8::MAX));
    });
    let history = seen("history", &|parts| edit(parts, |state| state["history"] = Value::Array(Vec::new())));
    for differing in [live, ema, momentum, statistics, margins, history] {
        assert!(differing.contains(&"events.jsonl".to_owned()), "{differing:?}");
    }
    // In so few steps labels reach the counts of classes, and no threshold yet.
    assert!(labels.contains(&"checkpoints/step-000000012/state.json".to_owned()), "{labels:?}");
    // One step further, or one back, is another order.
    for step in [STOPPED - 1, STOPPED + 1] {
        let differing = case.differing(&format!("step {step}"), step, |_| ());
        assert!(differing.contains(&"events.jsonl".to_owned()), "{differing:?}");
    }
}

/// An event speaks of the steps before a checkpoint too.
#[test]
fn the_window_of_an_event_is_seen() {
    let case =
        Case::new(&["method.base=softmatch", "log.every=9", "checkpoint.every=7", "checkpoint.keep=9"]);
    let whole = case.bench.train("whole", &case.settings);
    let killed = case.bench.folder("killed");
    for (name, change) in [("same", None), ("window", Some("pseudo")), ("overflows", Some("overflows"))] {
        // As if the run had been killed behind its checkpoint of step 7.
        copy(&whole, &killed);
        for later in (STOPPED + 1..=12).map(|step| checkpoint(&killed, step)).filter(|later| later.exists()) {
            fs::remove_dir_all(later).unwrap();
        }
        rewrite(&killed, STOPPED, |parts| {
            edit(parts, |state| match change {
                Some("pseudo") => {
                    let zero = state["window"]["pseudo"]["weight"].as_object_mut().unwrap();
                    zero.values_mut().for_each(|number| *number = Value::from(0.0));
                }
                Some(_) => state["window"]["overflows"] = Value::from(3),
                None => {}
            });
        });
        resume(&killed).unwrap();
        let differing = differing(&whole, &killed);
        assert_eq!(differing.contains(&"events.jsonl".to_owned()), change.is_some(), "{name}: {differing:?}");
        fs::remove_dir_all(&killed).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn softmatchs_moments_are_seen() {
    let case = Case::new(&["method.base=softmatch"]);
    let differing = case.differing("moments", STOPPED, |parts| {
        edit(parts, |state| {
            let base = state.pointer_mut("/method/base/softmatch").unwrap();
            let moment = base.as_object_mut().unwrap().values_mut().find(|value| value.is_f64()).unwrap();
            *moment = Value::from(0.5);
        });
    });
    assert!(differing.contains(&"events.jsonl".to_owned()), "{differing:?}");
}
