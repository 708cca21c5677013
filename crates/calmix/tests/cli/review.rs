//! `calmix review`: from vectors or images to the rows that are asked for, and around the loop with `label` and `train`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use calmix_testkit::tier;
use calmix_testkit::workspace::Workspace;

use super::new_workspace;
use crate::planted;

/// The rows of a review by file: label, given, predicted, why, drawn.
fn rows(workspace: &Workspace) -> BTreeMap<String, [String; 5]> {
    let mut reader = csv::Reader::from_path(workspace.path("review.csv")).unwrap();
    assert_eq!(
        reader.headers().unwrap().iter().collect::<Vec<_>>(),
        ["file", "label", "given", "predicted", "confidence", "why", "drawn"]
    );
    let row = |record: csv::StringRecord| {
        (record[0].to_owned(), [1, 2, 3, 5, 6].map(|column| record[column].to_owned()))
    };
    reader.records().map(|record| row(record.unwrap())).collect()
}

/// Fills in every label.
fn answer(workspace: &Workspace, class: impl Fn(&str) -> String) {
    let mut text = "file,label,drawn\n".to_owned();
    for (file, row) in rows(workspace) {
        text.extend([file.as_str(), ",", &class(&file), ",", &row[4], "\n"]);
    }
    fs::write(workspace.path("review.csv"), text).unwrap();
}

fn planted_class(row: &str) -> String {
    planted::class(row.parse().unwrap()).to_owned()
}

fn files<'a>(rows: &'a BTreeMap<String, [String; 5]>, why: &str) -> Vec<&'a str> {
    rows.iter().filter(|(_, row)| row[3] == why).map(|(file, _)| file.as_str()).collect()
}

#[test]
fn first_labels_lead_to_a_run_and_its_review() {
    let workspace = new_workspace();
    planted::write_npy(&workspace.path("vectors.npy"), 0..300, false);
    let output = workspace.run(&["review", "vectors.npy", "--count", "40", "--random", "0.5"]).with_code(0);
    output.prints(&[
        "40 samples to look at\n     20  typical samples without a label\n     20  samples drawn at random",
        "then: calmix label vectors.npy review.csv --labels labels.csv\n",
    ]);
    let first = rows(&workspace);
    assert!(
        first.values().all(|[label, given, predicted, ..]| [label, given, predicted]
            .iter()
            .all(|text| text.is_empty()))
    );
    assert!(first.values().all(|row| (row[3] == "random") == (row[4] == "random")));
    answer(&workspace, planted_class);
    workspace.run(&["label", "vectors.npy", "review.csv", "--labels", "labels.csv"]).with_code(0);
    let train =
        ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run", "--quiet"];
    let output = workspace.run(&train).with_code(0);
    output.prints(&[
        "out-of-fold, 20 labels",
        "20 labels drawn at random (20 more were chosen and trained on only).",
    ]);
    // The second review continues the order.
    let again = ["review", "run", "--count", "20"];
    let refused = workspace.run(&again).with_code(2);
    refused.reports(&["review.csv exists and may have answers", "--force replaces it"]);
    workspace.run(&[&again[..], &["--force"]].concat()).with_code(0);
    let second = rows(&workspace);
    assert!(files(&second, "random").iter().all(|file| !first.contains_key(*file)));
    for file in files(&second, "check") {
        let [label, given, predicted, ..] = &second[file];
        assert!(label.is_empty() && given != predicted && !given.is_empty() && !predicted.is_empty());
    }
    // A run knows only the labels that it was trained on.
    fs::write(workspace.path("labels.csv"), "id,label\n0,ant\n1,bee\n").unwrap();
    let stale = workspace.run(&[&again[..], &["--force"]].concat()).with_code(2);
    stale.reports(&["the labels or the files have changed since this run", "then review the new run"]);
}

#[test]
fn wrong_labels_and_copies_are_asked_about() {
    let workspace = new_workspace();
    planted::write_npy(&workspace.path("vectors.npy"), 0..300, false);
    let line = |row: usize| {
        let wrong = row % 15 == 7;
        format!("{row},{},sample {row}\n", planted::class(row + usize::from(wrong)))
    };
    let lines: Vec<String> = (0..90).map(line).collect();
    fs::write(workspace.path("labels.csv"), format!("id,label,text\n{}", lines.concat())).unwrap();
    let train =
        ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run", "--quiet"];
    workspace.run(&train).with_code(0);
    let output = workspace.run(&["review", "run", "--count", "40", "--choose", "margin"]).with_code(0);
    output.prints(&["labels that may be wrong", "samples that the model is least sure of"]);
    let found = rows(&workspace);
    let checked = files(&found, "check");
    let wrong = (0..90).filter(|row| row % 15 == 7).map(|row| row.to_string());
    let hits = wrong.filter(|row| checked.contains(&row.as_str())).count();
    assert!(hits >= 4, "{hits} of 6 in {checked:?}");
    for file in files(&found, "margin") {
        assert!(file.parse::<usize>().unwrap() >= 90 && found[file][4] == "chosen");
    }
    assert!(files(&found, "random").iter().all(|file| found[*file][2].is_empty()));
    let page = fs::read_to_string(workspace.path("review.html")).unwrap();
    assert!(
        page.contains("sample 7") && page.contains("calmix label vectors.npy review.csv --labels labels.csv")
    );
}

#[test]
fn images_without_weights_are_drawn_at_random() {
    let workspace = new_workspace();
    workspace.images("photos", 20, 12);
    let output = workspace.run(&["review", "photos", "--count", "5"]).with_code(0);
    output.reports(&["without pretrained weights all rows are drawn at random"]);
    let found = rows(&workspace);
    assert_eq!(files(&found, "random").len(), 5);
    let page = fs::read_to_string(workspace.path("review.html")).unwrap();
    assert!(page.contains("data:image/png;base64,"));
    // The answers make a list, and the next review leaves them out.
    answer(&workspace, |file| if file < "3" { "b".to_owned() } else { "a".to_owned() });
    workspace.run(&["label", "photos", "review.csv"]).with_code(0);
    workspace.run(&["review", "photos", "--count", "50", "--force"]).with_code(0);
    let next = rows(&workspace);
    assert_eq!(next.len(), 7);
    assert!(next.keys().all(|file| !found.contains_key(file)));
}

#[test]
fn download_of_the_page_is_read() {
    if env::var_os("CALMIX_BROWSER_MODULES").is_none() {
        return tier::skipped("CALMIX_BROWSER_MODULES names no folder with puppeteer-core and axe-core");
    }
    let workspace = new_workspace();
    for (class, shade, count) in [("cat, \"grey\"", 40, 2), ("dog", 200, 2), ("unlabelled", 120, 9)] {
        workspace.images(&format!("photos/{class}"), shade, count);
    }
    workspace.run(&["review", "photos"]).with_code(0);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../calmix-report/tests/review_page.mjs");
    let mut browser = Command::new("node");
    let output = browser.arg(script).arg(workspace.folder()).arg("a page of calmix review").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = workspace.run(&["label", "photos", "answers.csv"]).with_code(0);
    output.prints(&["photos/labels.csv: 6 labels added, 3 rows skipped\n"]);
    let read = |name: &str| {
        let mut reader = csv::Reader::from_path(workspace.path(name)).unwrap();
        let drawn = reader.headers().unwrap().iter().position(|column| column == "drawn").unwrap();
        let row = |row: csv::StringRecord| (row[0].to_owned(), [row[1].to_owned(), row[drawn].to_owned()]);
        reader.records().map(|record| row(record.unwrap())).collect::<BTreeMap<_, _>>()
    };
    let mut labels = read("photos/labels.csv");
    labels.retain(|file, _| file.starts_with("unlabelled/"));
    assert_eq!(labels, read("answers.csv"));
}

#[test]
fn shares_out_of_range_are_refused() {
    let workspace = new_workspace();
    planted::write_npy(&workspace.path("vectors.npy"), 0..30, false);
    let refused = workspace.run(&["review", "vectors.npy", "--random", "1.5"]).with_code(2);
    refused.reports(&["--random is 1.5, expected a share from 0 to 1"]);
}
