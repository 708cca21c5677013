//! What readers find in the folder of a run.

use std::fs;
use std::path::Path;

use calmix_io::error::FileProblem;
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::margins::SampleMargins;
use calmix_metrics::predictions::{EvalModel, EvalSet};
use calmix_recipe::Selection;
use calmix_run::events::Event;
use calmix_run::read;
use calmix_run::read::overview::{OverviewMetrics, RunState, overview};
use calmix_run::result::RunResult;
use calmix_run::run::{Mark, Run, RunFile};
use calmix_run::tensor_files::examples::{SIDES, Thumbnails};

use super::made;

/// A run that has begun and has these events.
fn run_with(folder: &Path, events: &[Event]) -> Run {
    let run = Run::create(folder).unwrap();
    run.write(RunFile::Recipe, b"").unwrap();
    run.write(RunFile::Summary, &serde_json::to_vec(&made::summary()).unwrap()).unwrap();
    let mut journal = run.journal(&Mark::start()).unwrap();
    for event in events {
        journal.append(&event.to_line().unwrap()).unwrap();
    }
    run
}

/// The evaluations of [`made::events`] for which `wanted` holds.
fn evaluations(wanted: impl Fn(&Evaluation) -> bool) -> Vec<Evaluation> {
    let evaluations = made::events().into_iter().filter_map(|event| match event {
        Event::Evaluation(seen) if wanted(&seen) => Some(*seen),
        _ => None,
    });
    evaluations.collect()
}

fn metrics_of(seen: &Evaluation) -> OverviewMetrics {
    OverviewMetrics {
        split: seen.split,
        samples: seen.samples,
        error: seen.metrics.error,
        ece_15: seen.metrics.ece_15,
    }
}

/// The metrics in the overview of a run with these evaluations.
fn overview_of(evaluations: &[Evaluation]) -> Option<OverviewMetrics> {
    let temp = tempfile::tempdir().unwrap();
    let events: Vec<_> = evaluations.iter().cloned().map(Box::new).map(Event::Evaluation).collect();
    drop(run_with(temp.path(), &events));
    overview(temp.path()).metrics
}

#[test]
fn overview_has_the_latest_metrics_on_test() {
    let temp = tempfile::tempdir().unwrap();
    let mut events = made::events();
    assert!(matches!(events.pop(), Some(Event::Finished(_))));
    let run = run_with(temp.path(), &events);
    if cfg!(target_os = "linux") {
        assert_eq!(overview(temp.path()).state, RunState::Running);
    }
    fs::create_dir(run.paths().checkpoints().join("step-000000005")).unwrap();
    fs::create_dir(run.paths().checkpoints().join("step-000000010")).unwrap();
    drop(run);

    let found = overview(temp.path());
    let wanted =
        |seen: &Evaluation| (seen.step, seen.split, seen.model) == (10, EvalSet::Test, EvalModel::Ema);
    assert_eq!(found.state, RunState::Unfinished);
    assert_eq!(found.step, Some(10));
    assert_eq!(found.summary, Some(made::summary()));
    assert_eq!(found.metrics, Some(metrics_of(&evaluations(wanted)[0])));

    fs::remove_dir_all(temp.path().join("checkpoints")).unwrap();
    fs::remove_file(temp.path().join("events.jsonl")).unwrap();
    let found = overview(temp.path());
    assert_eq!(found.state, RunState::Unfinished);
    assert_eq!((found.step, found.metrics), (None, None));
}

/// Without a test split, the metrics are those of held-out labels, and never those of labels that were trained on.
#[test]
fn overview_without_test_has_held_out_metrics() {
    let mut seen = evaluations(|seen| (seen.step, seen.split) == (10, EvalSet::Validation));
    let held_out = seen.pop().unwrap();
    let trained_on = Evaluation { split: EvalSet::Labelled, ..held_out.clone() };
    let out_of_fold = Evaluation { split: EvalSet::OutOfFold, ..held_out.clone() };
    let live = Evaluation { model: EvalModel::Live, ..held_out.clone() };
    assert_eq!(overview_of(&[trained_on.clone(), live]), None);
    assert_eq!(overview_of(&[out_of_fold.clone(), trained_on.clone()]), Some(metrics_of(&out_of_fold)));
    assert_eq!(overview_of(&[held_out.clone(), out_of_fold, trained_on]), Some(metrics_of(&held_out)));
}

#[test]
fn overview_of_a_finished_run_has_the_selected_metrics() {
    let temp = tempfile::tempdir().unwrap();
    let mut events = made::events();
    let run = run_with(temp.path(), &events);
    let Some(Event::Finished(finished)) = events.pop() else { unreachable!() };
    assert!(read::result(temp.path()).unwrap().is_none());
    for selection in [Selection::Last, Selection::Median] {
        let selected = finished.selected[&selection].clone();
        let result = RunResult {
            pool: None,
            step: 10,
            selection,
            classes: vec!["a".into(), "b".into()],
            scaling: None,
            uncalibrated: None,
            evaluations: Vec::new(),
            heads: None,
            visits: None,
            finished: finished.clone(),
        };
        run.write(RunFile::Result, &serde_json::to_vec(&result).unwrap()).unwrap();
        assert_eq!(read::result(temp.path()).unwrap(), Some(result));
        let found = overview(temp.path());
        let expected = OverviewMetrics {
            split: selected.on,
            samples: selected.samples,
            error: selected.metrics.error,
            ece_15: selected.metrics.ece_15,
        };
        assert_eq!((found.state, found.metrics), (RunState::Finished, Some(expected)));
    }
}

#[test]
fn margins_thumbnails_and_recipe_are_read_back() {
    let temp = tempfile::tempdir().unwrap();
    assert!(!read::has_begun(temp.path()));
    let run = run_with(temp.path(), &[]);
    assert!(read::has_begun(temp.path()));
    run.write(RunFile::Recipe, b"seed = 1\n").unwrap();
    assert_eq!(read::recipe(temp.path()).unwrap(), "seed = 1\n");

    assert!(read::margins(temp.path()).unwrap().is_none());
    let mut margins = SampleMargins::default();
    margins.labelled.add(1.5);
    run.write(RunFile::Margins, &serde_json::to_vec(&margins).unwrap()).unwrap();
    assert_eq!(read::margins(temp.path()).unwrap(), Some(margins));

    assert!(read::thumbnails(temp.path()).unwrap().is_none());
    let pixels = SIDES.map(|side| vec![7; 3 * side * side]);
    let thumbnails = Thumbnails { ids: vec![4], names: vec!["cat.png".into()], pixels };
    run.write(RunFile::Thumbnails, &thumbnails.to_bytes().unwrap()).unwrap();
    assert_eq!(read::thumbnails(temp.path()).unwrap(), Some(thumbnails));
    run.write(RunFile::Thumbnails, b"nothing").unwrap();
    let error = read::thumbnails(temp.path()).unwrap_err();
    assert!(matches!(error.problem, FileProblem::Format(_)), "{error}");
}

#[test]
fn latest_evaluations_replace_earlier_ones() {
    let temp = tempfile::tempdir().unwrap();
    drop(run_with(temp.path(), &made::events()));
    assert_eq!(read::events(temp.path()).unwrap().len(), made::events().len());
    let latest = |wanted: fn(&Evaluation) -> bool| -> Vec<Evaluation> {
        let events = read::latest_evaluations(temp.path(), wanted).unwrap();
        let evaluations = events.into_iter().map(|event| match event {
            Event::Evaluation(seen) => *seen,
            other => unreachable!("{other:?}"),
        });
        evaluations.collect()
    };
    assert_eq!(latest(|_| true), evaluations(|seen| seen.step == 10));
    assert_eq!(latest(|seen| seen.step == 5), evaluations(|seen| seen.step == 5));
}

#[test]
fn event_line_has_a_longest_length() {
    let temp = tempfile::tempdir().unwrap();
    drop(run_with(temp.path(), &[]));
    let path = temp.path().join("events.jsonl");
    let longest = 1 << 20;
    fs::write(&path, "x".repeat(longest)).unwrap();
    let error = read::events(temp.path()).unwrap_err();
    assert!(matches!(error.problem, FileProblem::Limit(_)), "{error}");
    fs::write(&path, "x".repeat(longest - 1)).unwrap();
    assert!(read::events(temp.path()).unwrap().is_empty(), "a torn line");
    let line = "x".repeat(longest - 1) + "\n";
    fs::write(&path, line).unwrap();
    let error = read::events(temp.path()).unwrap_err();
    assert!(matches!(error.problem, FileProblem::Format(_)), "{error}");
}
