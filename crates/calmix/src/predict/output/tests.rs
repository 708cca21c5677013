//! Outputs that are killed and resumed.

use std::fs;

use calmix_metrics::shift::ObservedRow;
use serde_json::json;

use super::*;
use crate::predict::prediction_rule::Prediction;
use crate::predict::shift_check::ComparedBatch;

fn format(kind: RowKind, classes: &[String]) -> RowFormat<'_> {
    RowFormat { kind, classes, rows_of_part: 2, ..RowFormat::default() }
}

fn image(path: &str) -> PredictedRow<'_> {
    let error = Some("no image".to_owned());
    PredictedRow { name: path.to_owned(), error, ..PredictedRow::default() }
}

#[test]
fn a_torn_row_is_cut_off_and_nothing_else() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("out.csv");
    let (made_by, classes) = (json!({"model": "abc", "coverage": 0.9}), ["cat".to_owned()]);
    let (format, images) = (format(RowKind::Csv, &classes), [image("a"), image("b")]);
    let mut output = RowOutput::create(Some(&path), &made_by, &format, None).unwrap();
    output.write(&images).unwrap();
    output.finish(None).unwrap();
    assert!(RowOutput::create(Some(&path), &made_by, &format, None).is_err());
    let whole = fs::read(&path).unwrap();
    // Torn at every byte, the rest written again is the same file.
    for end in 0..=whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        let (mut output, written) = RowOutput::resume(&path, &made_by, &format, None).unwrap();
        let last = written.rows.checked_sub(1).map(|last| format.row(&images[last as usize]));
        assert_eq!(written.last, last.unwrap_or_default());
        output.write(&images[written.rows as usize..]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole, "torn at {end}");
    }
    let other = json!({"model": "xyz", "coverage": 0.9});
    let error = RowOutput::resume(&path, &other, &format, None).unwrap_err().to_string();
    assert!(error.contains("it was written with model \"abc\", not \"xyz\""), "{error}");
    fs::write(&path, "path,other\n").unwrap();
    assert!(RowOutput::resume(&path, &made_by, &format, None).is_err());
}

/// A kill may leave a file without rows and without its note, and a user may remove a folder without its list.
#[test]
fn leftovers_do_not_end_up_in_an_output() {
    let temp = tempfile::tempdir().unwrap();
    let (made_by, classes) = (json!({"model": "abc"}), ["cat".to_owned()]);
    let csv = format(RowKind::Csv, &classes);
    let empty = temp.path().join("out.csv");
    fs::write(&empty, "").unwrap();
    let (mut output, written) = RowOutput::resume(&empty, &made_by, &csv, None).unwrap();
    assert_eq!(written, WrittenRows::default());
    output.write(&[image("a")]).unwrap();
    assert_eq!(fs::read_to_string(&empty).unwrap(), csv.header() + &csv.row(&image("a")));

    let parts = format(RowKind::Parquet, &classes);
    let folder = temp.path().join("out.parquet");
    for (rows, lines) in [(&["a", "b", "c"][..], 2), (&["a"], 1)] {
        let made_by = json!({"version": "1", "model": "abc", "coverage": 0.9, "paths": []});
        let mut output = RowOutput::create(Some(&folder), &made_by, &parts, None).unwrap();
        output.write(&rows.iter().map(|row| image(row)).collect::<Vec<_>>()).unwrap();
        output.finish(None).unwrap();
        let list = fs::read_to_string(temp.path().join("out.parquet.parts.jsonl")).unwrap();
        assert_eq!(list.lines().count(), lines, "{list}");
        fs::remove_dir_all(&folder).unwrap();
    }
}

/// A process that was killed while it wrote the note leaves its scratch file.
#[test]
fn scratch_of_a_killed_note_is_removed() {
    let temp = tempfile::tempdir().unwrap();
    for (name, kind) in [("out.csv", RowKind::Csv), ("out.parquet", RowKind::Parquet)] {
        let scratch = temp.path().join(format!(".{name}.predict.json.tmp-1-0"));
        fs::write(&scratch, "{").unwrap();
        let other = temp.path().join(".other.predict.json.tmp-1-0");
        fs::write(&other, "{").unwrap();
        let made_by = json!({"model": "abc"});
        let format = format(kind, &[]);
        RowOutput::resume(&temp.path().join(name), &made_by, &format, None).unwrap().0.finish(None).unwrap();
        assert!(!scratch.exists() && other.exists());
    }
}

/// A folder without rows has one part, also after it is resumed.
#[test]
fn resumed_folder_without_rows_has_none() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("out.parquet");
    let made_by = json!({"model": "abc"});
    let format = format(RowKind::Parquet, &[]);
    RowOutput::create(Some(&path), &made_by, &format, None).unwrap().finish(None).unwrap();
    let (output, written) = RowOutput::resume(&path, &made_by, &format, None).unwrap();
    assert_eq!(written, WrittenRows::default());
    output.finish(None).unwrap();
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
}

/// Killed between any two writes: whole parts stay, the others are written again.
#[test]
fn a_folder_of_parts_goes_on_after_the_last_whole_one() {
    let temp = tempfile::tempdir().unwrap();
    let (path, list) = (temp.path().join("out.parquet"), temp.path().join("out.parquet.parts.jsonl"));
    let (made_by, classes) = (json!({"model": "abc"}), ["cat".to_owned()]);
    let format = format(RowKind::Parquet, &classes);
    let images = ["a", "b", "c", "d", "e"].map(image);
    let mut output = RowOutput::create(Some(&path), &made_by, &format, None).unwrap();
    output.write(&images).unwrap();
    output.finish(None).unwrap();
    let parts = || {
        let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names.iter().map(|part| fs::read(part).unwrap()).collect::<Vec<_>>()
    };
    let (whole, lines) = (parts(), fs::read_to_string(&list).unwrap());
    assert_eq!((whole.len(), lines.lines().count()), (3, 3));
    for end in 0..=lines.len() {
        fs::write(&list, &lines[..end]).unwrap();
        let (mut output, written) = RowOutput::resume(&path, &made_by, &format, None).unwrap();
        let kept = lines[..end].matches('\n').count();
        assert_eq!(written.rows, [0, 2, 4, 5][kept]);
        assert_eq!(written.last, ["", "b\n", "d\n", "e\n"][kept]);
        output.write(&images[written.rows as usize..]).unwrap();
        output.finish(None).unwrap();
        assert!(parts() == whole && fs::read_to_string(&list).unwrap() == lines, "torn at {end}");
    }
    for (place, what) in [(path.join("part-00001.parquet"), "it was changed"), (list, "not a file of")] {
        let intact = fs::read(&place).unwrap();
        let mut bytes = intact.clone();
        bytes[9] ^= 1;
        fs::write(&place, bytes).unwrap();
        let error = RowOutput::resume(&path, &made_by, &format, None).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
        fs::write(&place, intact).unwrap();
    }
    fs::remove_file(path.join("part-00000.parquet")).unwrap();
    assert!(RowOutput::resume(&path, &made_by, &format, None).is_err());
}

fn empty_sums() -> BatchSums {
    BatchSums::new(2, 2)
}

fn verdict() -> BatchVerdict {
    BatchVerdict::new(ComparedBatch { verdict: None, why_not: "a test".to_owned() }, None, None)
}

/// Predictions of six rows, of which one could not be read.
struct Predicted {
    predictions: Vec<Prediction>,
    observed: Vec<ObservedRow>,
}

impl Predicted {
    fn new() -> Self {
        let prediction = |n: usize| Prediction {
            label: n % 2,
            confidence: 0.75,
            margin: 0.5,
            probabilities: vec![0.25 + 0.5 * (n % 2) as f32, 0.75 - 0.5 * (n % 2) as f32],
            set: None,
            abstain: None,
        };
        let observed = |n: usize| ObservedRow {
            coordinates: vec![n as f64 / 7.0, -1.0],
            distance: 1.0 + n as f64,
            p_value: 1.0 / (1.0 + n as f64),
        };
        Self { predictions: (0..6).map(prediction).collect(), observed: (0..6).map(observed).collect() }
    }

    fn rows(&self) -> Vec<PredictedRow<'_>> {
        let row = |n: usize| PredictedRow {
            name: format!("{n}.png"),
            prediction: (n != 3).then(|| &self.predictions[n]),
            observed: (n != 3).then(|| &self.observed[n]),
            ..PredictedRow::default()
        };
        (0..6).map(row).collect()
    }
}

/// Killed while rows or sums are written, a resumed output has the rows, the sums and the verdict of one piece.
#[test]
fn resumed_output_has_the_sums_of_one_piece() {
    let temp = tempfile::tempdir().unwrap();
    let made_by = json!({"version": "1", "model": "abc", "coverage": 0.9, "paths": []});
    let classes = ["cat".to_owned(), "dog".to_owned()];
    let predicted = Predicted::new();
    let rows = predicted.rows();
    for kind in [RowKind::Csv, RowKind::Jsonl] {
        let format = format(kind, &classes);
        let path = temp.path().join(format!("out.{kind:?}"));
        let journal = beside(&path, ".sums.jsonl");
        let note = beside(&path, ".predict.json");
        let mut output = RowOutput::create(Some(&path), &made_by, &format, Some(empty_sums())).unwrap();
        let started = fs::read(&note).unwrap();
        rows.chunks(2).for_each(|batch| output.write(batch).unwrap());
        let saved = fs::read(&journal).unwrap();
        output.finish(Some(&verdict())).unwrap();
        let whole = fs::read(&path).unwrap();
        let finished: Value = serde_json::from_slice(&fs::read(&note).unwrap()).unwrap();
        assert_eq!((&finished["sums"]["written"], &finished["sums"]["sums"]["rows"]), (&6.into(), &5.into()));
        assert_eq!(finished["sums"]["sums"]["strangest"][0]["name"], "5.png");
        assert!(!journal.exists());
        // Rows that are not in the sums are cut, and sums of rows that are not in the file are passed over.
        for end in (0..=whole.len()).step_by(13).chain([whole.len()]) {
            for lines in [0, saved.len() / 2, saved.len()] {
                fs::write(&path, &whole[..end]).unwrap();
                fs::write(&journal, &saved[..lines]).unwrap();
                fs::write(&note, &started).unwrap();
                let (mut output, written) =
                    RowOutput::resume(&path, &made_by, &format, Some(empty_sums())).unwrap();
                assert_eq!(written.rows % 2, 0);
                rows[written.rows as usize..].chunks(3).for_each(|batch| output.write(batch).unwrap());
                output.finish(Some(&verdict())).unwrap();
                let again: Value = serde_json::from_slice(&fs::read(&note).unwrap()).unwrap();
                assert!(again == finished && fs::read(&path).unwrap() == whole, "{kind:?} {end} {lines}");
            }
        }
        // A finished output that is resumed stays as it is.
        let (output, written) = RowOutput::resume(&path, &made_by, &format, Some(empty_sums())).unwrap();
        assert_eq!(written.rows, 6);
        output.finish(Some(&verdict())).unwrap();
        let again: Value = serde_json::from_slice(&fs::read(&note).unwrap()).unwrap();
        assert_eq!(again, finished);
        // One that was begun without sums keeps its rows, and has none.
        fs::write(&note, &started).unwrap();
        let (output, written) = RowOutput::resume(&path, &made_by, &format, Some(empty_sums())).unwrap();
        assert!(written.rows == 6 && output.sums().is_none());
        fs::write(&journal, "{\"foreign\": 1}\n").unwrap();
        drop(output);
        assert!(RowOutput::resume(&path, &made_by, &format, Some(empty_sums())).is_err());
    }
}

#[test]
fn resumed_folder_has_the_sums_of_one_piece() {
    let temp = tempfile::tempdir().unwrap();
    let made_by = json!({"version": "1", "model": "abc", "coverage": 0.9, "paths": []});
    let classes = ["cat".to_owned(), "dog".to_owned()];
    let predicted = Predicted::new();
    let rows = predicted.rows();
    let format = RowFormat { unusual: true, ..format(RowKind::Parquet, &classes) };
    let path = temp.path().join("out.parquet");
    let list = temp.path().join("out.parquet.parts.jsonl");
    let note = temp.path().join("out.parquet.predict.json");
    let mut output = RowOutput::create(Some(&path), &made_by, &format, Some(empty_sums())).unwrap();
    rows.chunks(5).for_each(|batch| output.write(batch).unwrap());
    output.finish(Some(&verdict())).unwrap();
    let finished = fs::read(&note).unwrap();
    let lines = fs::read_to_string(&list).unwrap();
    for kept in 0..=3 {
        fs::write(&list, lines.split_inclusive('\n').take(kept).collect::<String>()).unwrap();
        let (mut output, written) = RowOutput::resume(&path, &made_by, &format, Some(empty_sums())).unwrap();
        assert_eq!(written.rows, 2 * kept as u64);
        rows[2 * kept..].chunks(4).for_each(|batch| output.write(batch).unwrap());
        output.finish(Some(&verdict())).unwrap();
        assert!(
            fs::read(&note).unwrap() == finished && fs::read_to_string(&list).unwrap() == lines,
            "{kept}"
        );
    }
}
