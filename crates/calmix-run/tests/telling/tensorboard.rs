//! TensorBoard itself reads the files back.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use calmix_run::events::Event;
use calmix_run::sink::{Hyperparameter, Sink, TensorBoard};
use calmix_testkit::python::interpreter;
use serde_json::{Value, json};

use super::made;

/// Tag → step → value.
type Scalars = BTreeMap<String, Vec<(u64, f32)>>;

/// The interpreter of an environment with TensorBoard.
pub(crate) fn python() -> PathBuf {
    interpreter("tensorboard", "CALMIX_TENSORBOARD_PYTHON")
}

/// What a script that uses TensorBoard prints about a folder.
fn script(name: &str, folder: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/telling").join(name);
    let output = Command::new(python()).arg(script).arg(folder).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What TensorBoard makes of a folder.
fn read_back(folder: &Path) -> Scalars {
    let read: BTreeMap<String, Vec<(u64, f64)>> =
        serde_json::from_value(script("read_back.py", folder)).unwrap();
    read.into_iter()
        .map(|(tag, points)| (tag, points.into_iter().map(|(step, value)| (step, value as f32)).collect()))
        .collect()
}

/// Every number in the lines of `events.jsonl`, found without any knowledge of the fields.
fn in_lines(events: &[Event]) -> Scalars {
    fn collect(path: &str, value: &Value, step: u64, into: &mut Scalars) {
        if let Some(number) = value.as_f64() {
            into.entry(path.to_owned()).or_default().push((step, number as f32));
        }
        for (part, value) in value.as_object().into_iter().flatten() {
            let below = if path.is_empty() { part.clone() } else { format!("{path}/{part}") };
            collect(&below, value, step, into);
        }
    }
    let mut scalars = Scalars::new();
    for event in events {
        let mut line: Value = serde_json::from_str(&event.to_line().unwrap()).unwrap();
        let step = line.as_object_mut().unwrap().remove("step").unwrap().as_u64().unwrap();
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let prefix = match text("event").as_str() {
            "step" => "train".to_owned(),
            "evaluation" => format!("{}/{}", text("split"), text("model")),
            "finished" => String::new(),
            _ => continue,
        };
        collect(&prefix, &line, step, &mut scalars);
    }
    scalars
}

fn write(folder: &Path, name: &str, resumed_after: Option<u64>, events: &[Event]) {
    let file = File::create(folder.join(name)).unwrap();
    let mut now = 1_800_000_000;
    let clock = || {
        now += 1;
        Duration::from_secs(now)
    };
    let mut sink = TensorBoard::new(file, clock, resumed_after).unwrap();
    for event in events {
        sink.event(event).unwrap();
    }
    sink.flush().unwrap();
}

#[test]
fn every_scalar_of_the_lines_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let events = made::events();
    write(folder.path(), "events.out.tfevents.1800000000.0", None, &events);
    let expected = in_lines(&events);
    assert!(expected.contains_key("test/ema/calibrated/intervals/ece_15/high") && expected.len() > 100);
    assert_eq!(expected["train/loss/unlabelled"].len(), 9, "the loss that is not finite is not there");
    assert_eq!(read_back(folder.path()), expected);
}

#[test]
fn a_resumed_run_replaces_what_it_repeats() {
    let folder = tempfile::tempdir().unwrap();
    let events = made::events();
    // Killed after step 8, with a checkpoint after step 6; the pace is written too.
    let killed: Vec<Event> = events.iter().filter(|event| event.step() <= 8).cloned().collect();
    let resumed: Vec<Event> = events.iter().filter(|event| event.step() > 6).cloned().collect();
    write(folder.path(), "events.out.tfevents.1800000000.0", None, &killed);
    write(folder.path(), "events.out.tfevents.1800000500.0", Some(6), &resumed);
    assert_eq!(read_back(folder.path()), in_lines(&events));
}

#[test]
fn pace_is_written_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("events.out.tfevents.1800000000.0")).unwrap();
    let mut sink = TensorBoard::new(file, || Duration::from_hours(500_000), None).unwrap();
    sink.pace(&made::pace(7)).unwrap();
    sink.flush().unwrap();
    let read = read_back(folder.path());
    assert_eq!(read["pace/images_per_second"], [(7, 412.25)]);
    assert_eq!(read["pace/waiting"], [(7, 0.012)]);
    assert_eq!(read.len(), 4);
}

/// Two runs side by side on TensorBoard's page HPARAMS, one of which was resumed and has not ended.
#[test]
fn settings_are_hyperparameters() {
    let folder = tempfile::tempdir().unwrap();
    let runs = [("a", "fixmatch", 3, true), ("b", "softmatch", 1, false)];
    for (name, base, seed, finishes) in runs {
        fs::create_dir(folder.path().join(name)).unwrap();
        let settings = [
            ("method.base".to_owned(), Hyperparameter::Text(base.to_owned())),
            ("optimiser.lr".to_owned(), Hyperparameter::Number(0.03)),
            ("optimiser.nesterov".to_owned(), Hyperparameter::Flag(true)),
            ("train.seed".to_owned(), Hyperparameter::Number(f64::from(seed))),
        ];
        let parts = if finishes { vec![None] } else { vec![None, Some(6)] };
        for (number, resumed_after) in parts.into_iter().enumerate() {
            let file = format!("events.out.tfevents.180000000{number}.0");
            let file = File::create(folder.path().join(name).join(file)).unwrap();
            let mut sink = TensorBoard::new(file, || Duration::from_hours(500_000), resumed_after).unwrap();
            sink.hyperparameters(&settings).unwrap();
            for event in
                made::events().iter().filter(|event| finishes || !matches!(event, Event::Finished(_)))
            {
                sink.event(event).unwrap();
            }
            sink.flush().unwrap();
        }
    }
    let run = |name: &str, base: &str, seed: f64, status: &str| {
        let settings = json!({"method.base": base, "optimiser.lr": 0.03, "optimiser.nesterov": true, "train.seed": seed});
        json!({"name": name, "hparams": settings, "status": status, "error": 0.25})
    };
    let mut read = script("read_hparams.py", folder.path());
    // The metric is whatever the events say: it is there.
    for run in read.as_array_mut().unwrap() {
        assert!(run["error"].is_number(), "{run}");
        run["error"] = 0.25.into();
    }
    assert_eq!(
        read,
        json!([run("a", "fixmatch", 3.0, "STATUS_SUCCESS"), run("b", "softmatch", 1.0, "STATUS_UNKNOWN")])
    );
}
