//! `calmix guard`: sets and abstention around the probabilities of any model.

use std::fmt::Write;
use std::fs;

use calmix_core::rng::{Domain, Seed};
use calmix_testkit::workspace::Workspace;

use super::{new_workspace, with_run};
use crate::planted;

const CLASSES: [&str; 3] = ["cat", "dog", "owl"];
const LABELLED: usize = 400;
const ROWS: usize = 2_400;

/// Calibrated probabilities, with labels drawn from them, as `p.csv` and `labels.csv`; returns the class of each row.
fn drawn(workspace: &Workspace, labelled: usize) -> Vec<&'static str> {
    let mut stream = Seed(9).stream(Domain::Bootstrap, 0, 0);
    let mut table = "id,cat,dog,owl\n".to_owned();
    let mut labels = "id,label\n".to_owned();
    let mut truth = Vec::new();
    for row in 0..ROWS {
        let weights: [f64; 3] = [0; 3].map(|_| (3.0 * stream.normal()).exp());
        let total: f64 = weights.iter().sum();
        let [cat, dog, owl] = weights.map(|weight| weight / total);
        let drawn = stream.uniform();
        let class = if drawn < cat { 0 } else { 1 + usize::from(drawn >= cat + dog) };
        writeln!(table, "row-{row},{cat},{dog},{owl}").unwrap();
        if row < labelled {
            writeln!(labels, "row-{row},{}", CLASSES[class]).unwrap();
        }
        truth.push(CLASSES[class]);
    }
    fs::write(workspace.path("p.csv"), table).unwrap();
    fs::write(workspace.path("labels.csv"), labels).unwrap();
    truth
}

#[test]
fn guarantees_hold_for_the_other_rows() {
    let workspace = new_workspace();
    let truth = drawn(&workspace, LABELLED);
    let options = [
        "--precision",
        "0.9",
        "--precision",
        "0.8",
        "--out",
        "guarded.csv",
        "--json",
        "--report",
        "page.html",
    ];
    let command = [&["guard", "p.csv", "--labels", "labels.csv"][..], &options].concat();
    let output = workspace.run(&command).with_code(0);
    let summary = output.json();
    assert_eq!((&summary["labels"], &summary["rows"]), (&LABELLED.into(), &(ROWS - LABELLED).into()));
    assert!(
        summary["low"].as_f64() < summary["error"].as_f64()
            && summary["missing"].as_array().unwrap().is_empty()
    );
    output.reports(&[
        "400 labels: error",
        "precision 90.0%: answers",
        "precision 80.0%: answers",
        "hold together",
    ]);
    let table = fs::read_to_string(workspace.path("guarded.csv")).unwrap();
    let mut lines = table.lines();
    assert_eq!(lines.next().unwrap(), "id,label,confidence,margin,set,abstain,error");
    let mut covered = 0.0;
    let mut answers = 0.0;
    let mut right = 0.0;
    for (line, row) in lines.zip(LABELLED..) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells[0], format!("row-{row}"));
        covered += f64::from(u8::from(cells[4].split('|').any(|class| class == truth[row])));
        if cells[5] == "false" {
            answers += 1.0;
            right += f64::from(u8::from(cells[1] == truth[row]));
        }
    }
    let rows = (ROWS - LABELLED) as f64;
    // The coverage of 400 labels varies by 0.015 around 0.9, and that of 2,000 rows by 0.007.
    assert!((0.85..0.96).contains(&(covered / rows)), "{}", covered / rows);
    assert!(answers > 0.2 * rows && right / answers > 0.88, "{answers} {right}");
    let [first, second] = [0, 1].map(|at| summary["precisions"][at]["answered"].as_f64().unwrap());
    assert!((first - answers / rows).abs() < 1e-9 && second > first);
    let page = fs::read_to_string(workspace.path("page.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("http://"));
}

#[test]
fn rows_of_predict_are_read_from_csv_and_parquet() {
    let workspace = with_run();
    planted::write_labels(&workspace.path("later.csv"), 0, 140);
    for (file, guarded) in
        [("predicted.csv", "guarded-of-csv.csv"), ("predicted.parquet", "guarded-of-parquet.csv")]
    {
        let predict = ["predict", "run", "vectors.npy", "--probabilities", "--out", file];
        workspace.run(&predict).with_code(0);
        let guard = ["guard", file, "--labels", "later.csv", "--sets", "lac-by-class", "--out", guarded];
        workspace.run(&guard).with_code(0);
    }
    let [csv, parquet] = ["guarded-of-csv.csv", "guarded-of-parquet.csv"]
        .map(|name| fs::read_to_string(workspace.path(name)).unwrap());
    assert!(csv == parquet && csv.lines().count() > 150, "{csv}");
}

#[test]
fn mistakes_are_named() {
    let workspace = new_workspace();
    drawn(&workspace, 5);
    let guard =
        |more: &[&str]| workspace.run(&[&["guard", "p.csv", "--labels", "labels.csv"][..], more].concat());
    let few = guard(&[]).with_code(0);
    few.reports(&["5 held-out labels are too few for a coverage of 90%", "the model always abstains"]);
    // The set has all classes, in an order of its own.
    let row = few.stdout.lines().nth(1).unwrap();
    assert!(row.matches('|').count() == 2 && row.ends_with(",true,"), "{row}");
    for (name, text, problem) in [
        (
            "labels.csv",
            "id,label\nrow-9,yak\n",
            "\"row-9\" has the label \"yak\", but the probabilities are of: cat, dog, owl",
        ),
        ("labels.csv", "id,label\nrow-9999,cat\n", "line 2: no row"),
        (
            "labels.csv",
            "id,label,drawn\nrow-1,cat,chosen\n",
            "no row with probabilities has a label that was drawn at random",
        ),
        ("p.csv", "id,cat,dog,owl\na,1,2,3\n", "line 2: row 0 (a): the probability of \"dog\" is 2"),
    ] {
        fs::write(workspace.path(name), text).unwrap();
        guard(&[]).with_code(2).reports(&[problem]);
    }
    guard(&["--precision", "2"]).with_code(2).reports(&["--precision is 2"]);
    guard(&["--out", "p.csv"]).with_code(2).reports(&["p.csv: already exists"]);
    guard(&["--format", "parquet"]).with_code(2).reports(&["--out guarded.parquet"]);
}
