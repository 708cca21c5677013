//! `calmix monitor`: outputs over days, the alarm, the bound from labels, and sidecars that are not what they should be.

use std::fmt::Write;
use std::fs;

use calmix_testkit::npy_file;
use calmix_testkit::workspace::Workspace;
use serde_json::{Value, json};

use super::new_workspace;
use crate::planted;

const ROWS: usize = 200;

/// A run with a reference, and outputs `day-1.csv` to `day-N.csv`; to rows of those from `changed` on, `change` is done.
fn scene(days: usize, changed: usize, change: fn(f32) -> f32) -> Workspace {
    let workspace = new_workspace();
    planted::write_npy(&workspace.path("vectors.npy"), 0..3_000, false);
    planted::write_labels(&workspace.path("labels.csv"), 0, 90);
    let train = ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run"];
    let quick = ["--set", "network.folds=3", "--threads", "1", "--quiet"];
    workspace.run(&[&train[..], &quick].concat()).with_code(0);
    for day in 1..=days {
        let mut file = npy_file::header("<f4", &[ROWS, planted::WIDTH]);
        let mut ids = "id\n".to_owned();
        for row in 0..ROWS {
            for number in planted::vector(3_000 + day * ROWS + row) {
                let moved = if day >= changed { change(number) } else { number };
                file.extend(moved.to_le_bytes());
            }
            writeln!(ids, "{day}-{row}").unwrap();
        }
        fs::write(workspace.path("day.npy"), file).unwrap();
        let output = format!("day-{day}.csv");
        workspace.run(&["predict", "run", "day.npy", "--out", &output]).with_code(0);
        // Ids that no other day has.
        let text = fs::read_to_string(workspace.path(&output)).unwrap();
        let rows = text
            .lines()
            .enumerate()
            .map(|(at, line)| if at == 0 { line.to_owned() } else { format!("{day}-{line}") });
        fs::write(workspace.path(&output), rows.collect::<Vec<_>>().join("\n") + "\n").unwrap();
    }
    workspace
}

fn monitor(workspace: &Workspace, days: usize, more: &[&str]) -> (i32, Value) {
    let outputs: Vec<String> = (1..=days).map(|day| format!("day-{day}.csv")).collect();
    let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
    let output = workspace.run(&[&["monitor", "run", "--json"][..], &outputs, more].concat());
    (output.code, output.json())
}

/// All rows move by 0.4, where the noise of each number is up to 1.5: single rows do not show so small a shift.
#[test]
fn change_raises_the_alarm() {
    let workspace = scene(6, 5, |number| number + 0.4);
    let (code, before) = monitor(&workspace, 4, &[]);
    assert_eq!(
        (code, &before["alarm"], &before["not_compared"]),
        (0, &Value::Null, &Value::Null),
        "{before}"
    );
    let mut labels = "id,label\n".to_owned();
    for day in 1..=4 {
        for row in 0..20 {
            writeln!(labels, "{day}-{row},{}", planted::class(3_000 + day * ROWS + row)).unwrap();
        }
    }
    fs::write(workspace.path("random.csv"), labels).unwrap();
    let (code, found) = monitor(&workspace, 6, &["--labels", "random.csv", "--report", "page.html"]);
    assert_eq!(code, 10, "{found}");
    assert!([5, 6].contains(&found["alarm"].as_u64().unwrap()), "{found}");
    assert_eq!(found["changed"], "mean", "{found}");
    let batches = found["batches"].as_array().unwrap();
    assert_eq!(batches[..4], before["batches"].as_array().unwrap()[..]);
    let strange = |batch: &Value| batch["strange"].as_f64().unwrap();
    assert!(strange(&batches[0]) < 0.15, "{found}");
    let verdicts: Vec<&Value> = batches.iter().map(|batch| &batch["verdict"]).collect();
    assert!(verdicts[..4].iter().all(|word| **word == "applies") && *verdicts[5] == "void", "{verdicts:?}");
    for batch in batches {
        assert_eq!(batch["rows"], ROWS);
        let mix: f64 = batch["mix"].as_array().unwrap().iter().map(|share| share.as_f64().unwrap()).sum();
        assert!((mix - 1.0).abs() < 1e-5);
    }
    let labelled = &found["labelled"];
    assert_eq!(labelled["labels"], 80);
    let share = labelled["wrong"].as_f64().unwrap() / 80.0;
    assert!(
        labelled["low"].as_f64().unwrap() <= share && share < labelled["high"].as_f64().unwrap(),
        "{labelled}"
    );
    let page = fs::read_to_string(workspace.path("page.html")).unwrap();
    assert!(
        page.contains("Alarm after batch") && page.matches("<svg").count() == 4 && !page.contains("<script")
    );
}

#[test]
fn sidecars_of_others_are_refused() {
    let workspace = scene(1, 9, |number| number);
    let path = workspace.path("day-1.csv.predict.json");
    let note: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let changed = |key: &str, value: Value| {
        let mut note = note.clone();
        *note.pointer_mut(key).unwrap() = value;
        note.to_string()
    };
    for (text, problem) in [
        (changed("/model", json!("abc")), "another model predicted it"),
        (changed("/sums", Value::Null), "has no sums"),
        (changed("/sums/sums/rows", json!(7)), "its sums contradict each other"),
        (changed("/sums/sums/p_values", json!([1])), "its sums contradict each other"),
        (changed("/sums/sums/predicted", json!([u64::MAX, 2, 0])), "its sums contradict each other"),
        ("[".to_owned(), "not a note of `calmix predict`"),
    ] {
        fs::write(&path, text).unwrap();
        workspace.run(&["monitor", "run", "day-1.csv"]).with_code(2).reports(&[problem]);
    }
    fs::remove_file(&path).unwrap();
    workspace
        .run(&["monitor", "run", "day-1.csv"])
        .with_code(2)
        .reports(&["there is no day-1.csv.predict.json beside it"]);
}
