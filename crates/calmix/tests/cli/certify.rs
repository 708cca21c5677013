//! `calmix certify` and `calmix verify`: from a run to certified labels, and what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use calmix_testkit::tier;
use calmix_testkit::workspace::Workspace;
use serde_json::{Value, json};

use super::new_workspace;
use crate::planted;

const ROWS: usize = 900;
const CERTIFY: [&str; 9] =
    ["certify", "run", "--pool", "vectors.npy", "--labels", "labels.csv", "--error", "0.1", "--json"];

/// A workspace with a run on 90 labelled vectors of 900.
fn with_pool() -> Workspace {
    let workspace = new_workspace();
    planted::write_npy(&workspace.path("vectors.npy"), 0..ROWS, false);
    planted::write_labels(&workspace.path("labels.csv"), 0, 90);
    let train = ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run"];
    let quick = ["--set", "network.folds=3", "--threads", "1", "--quiet"];
    workspace.run(&[&train[..], &quick].concat()).with_code(0);
    workspace
}

fn certify(workspace: &Workspace, more: &[&str]) -> Value {
    let output = workspace.run(&[&CERTIFY[..], more].concat()).with_code(0);
    serde_json::from_str(&output.stdout).unwrap()
}

/// Answers the first `count` rows of a review by the planted classes; the fifth is skipped.
fn answer(workspace: &Workspace, review: &str, to: &str, count: usize) {
    let mut reader = csv::Reader::from_path(workspace.path(review)).unwrap();
    let mut text = "file,label,drawn\n".to_owned();
    for (n, record) in reader.records().enumerate() {
        let record = record.unwrap();
        let columns = [3, 4].map(|column| record[column].to_owned());
        assert!(columns.iter().all(String::is_empty), "an audit shows no prediction: {record:?}");
        assert_eq!((&record[5], &record[6]), ("random", "audit"));
        let file = &record[0];
        let (label, drawn) = match n {
            4 => ("", "skipped"),
            n if n < count => (planted::class(file.parse().unwrap()), "audit"),
            _ => ("", "audit"),
        };
        text.extend([file, ",", label, ",", drawn, "\n"]);
    }
    fs::write(workspace.path(to), text).unwrap();
}

fn read(workspace: &Workspace, name: &str) -> String {
    fs::read_to_string(workspace.path(name)).unwrap()
}

#[test]
fn pool_is_certified_verified_and_trained_on() {
    let workspace = with_pool();
    let begun = certify(&workspace, &["--count", "40"]);
    assert_eq!((begun["certified_rows"].as_u64(), begun["pool_rows"].as_u64()), (Some(0), Some(810)));
    assert_eq!(begun["review"], "certificate/review-1.csv");
    let page = read(&workspace, "certificate/review-1.html");
    assert!(!page.contains("\"predicted\":\""), "an audit shows no prediction");
    let verify = ["verify", "certificate/certificate.json", "vectors.npy"];
    workspace.run(&verify).with_code(0).prints(&["Nothing is certified"]);

    // Parts of the answers at a time: the bound may be looked at after each.
    answer(&workspace, "certificate/review-1.csv", "anna.csv", 10);
    let first = certify(&workspace, &["--answers", "anna.csv"]);
    assert_eq!(
        (first["new_answers"].as_u64(), first["shares"][0]["wrong"].as_u64() >= Some(1)),
        (Some(10), true)
    );
    answer(&workspace, "certificate/review-1.csv", "anna.csv", 40);
    let mut state = certify(&workspace, &["--answers", "anna.csv", "--count", "40"]);
    for _ in 0..20 {
        if state["certified_rows"] != 0 {
            break;
        }
        answer(&workspace, state["review"].as_str().unwrap(), "anna.csv", 40);
        state = certify(&workspace, &["--answers", "anna.csv", "--count", "40"]);
    }
    let rows = state["certified_rows"].as_u64().unwrap();
    let answers = state["shares"][0]["answers"].as_u64().unwrap();
    assert!(rows > 200 && answers < rows, "{state}");
    let output = workspace.run(&verify).with_code(0);
    output.prints(&[
        "verified: certificate/certificate.json",
        "At most 10% of the first ",
        "is not a signature",
    ]);
    assert!(
        read(&workspace, "certificate/certificate.html")
            .contains("Certificate: at most 10% of the labels are wrong")
    );
    assert!(
        read(&workspace, "certificate/badge.md").starts_with("[![labels: at most 10% wrong](badge.svg)]")
    );

    // A verifier that was written from the documentation alone.
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/verify_certificate.py");
    let verifier = |data: &str| {
        let mut python = Command::new("python3");
        python.current_dir(workspace.folder()).args(["-B", script, "certificate/certificate.json", data]);
        python.output().unwrap()
    };
    let output = verifier("vectors.npy");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(printed.trim_end(), format!("verified: {rows} of 810 labels, at most 10.0% wrong"));
    planted::write_npy(&workspace.path("other.npy"), 1..ROWS + 1, false);
    assert!(!verifier("other.npy").status.success());
    workspace
        .run(&["verify", "certificate/certificate.json", "other.npy"])
        .with_code(1)
        .prints(&["has changed"]);

    // Certified labels are trained on, and no guarantee rests on them.
    let label = ["label", "vectors.npy", "certificate/certified.csv", "--labels", "labels.csv"];
    workspace.run(&label).with_code(0).prints(&[" certified", " audit"]);
    let train =
        ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "second", "--quiet"];
    let output = workspace.run(&[&train[..], &["--set", "network.folds=3"]].concat()).with_code(0);
    output.prints(&[" audited, ", " certified and trained on only)", "out-of-fold, 90 labels"]);
    // The samples are the same, so the certificate still holds.
    workspace.run(&verify).with_code(0);
}

/// Returns the answers of a review, as the page of the audit has them.
fn answers_of(workspace: &Workspace, review: &str) -> BTreeMap<String, Option<String>> {
    let mut reader = csv::Reader::from_path(workspace.path(review)).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let answered = rows.iter().filter(|row| !row[1].is_empty() || &row[2] == "skipped");
    answered
        .map(|row| (row[0].to_owned(), Some(row[1].to_owned()).filter(|label| !label.is_empty())))
        .collect()
}

#[test]
fn bound_on_the_page_is_that_of_the_command() {
    if Command::new("node").arg("--version").output().is_err() {
        return tier::skipped("there is no node to run WebAssembly");
    }
    let workspace = with_pool();
    certify(&workspace, &["--count", "40"]);
    answer(&workspace, "certificate/review-1.csv", "anna.csv", 40);
    // A second page, whose order has answered rows before its own.
    let state = certify(&workspace, &["--answers", "anna.csv", "--count", "50"]);
    assert_eq!(state["review"], "certificate/review-41.csv");
    answer(&workspace, "certificate/review-41.csv", "ben.csv", 30);
    fs::write(workspace.path("answers.json"), json!(answers_of(&workspace, "ben.csv")).to_string()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/audit_page.mjs");
    let mut node = Command::new("node");
    node.current_dir(workspace.folder()).args([script, "certificate/review-41.html", "answers.json"]);
    let output = node.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let of_page: Value = serde_json::from_slice(&output.stdout).unwrap();

    let of_command = certify(&workspace, &["--answers", "ben.csv"]);
    let shares = of_command["shares"].as_array().unwrap();
    assert_eq!(of_page.as_array().unwrap().len(), shares.len());
    for (page, command) in of_page.as_array().unwrap().iter().zip(shares) {
        assert_eq!(page["isCertified"], command["is_certified"]);
        for [name, of_page] in
            [["rows", "rows"], ["answers", "answers"], ["wrong", "wrong"], ["highest_error", "high"]]
        {
            assert_eq!(command[name].as_f64(), page[of_page].as_f64(), "{name}: {page} {command}");
        }
    }
    assert_eq!(shares[0]["answers"], 70);
    assert!(shares[0]["wrong"].as_u64() >= Some(2), "a skipped row of each review");
}

#[test]
fn changed_pools_models_and_files_are_refused() {
    let workspace = with_pool();
    certify(&workspace, &["--count", "20"]);
    let before = read(&workspace, "certificate/certificate.json");
    let page = read(&workspace, "certificate/review-1.csv");
    // The same command again shows the state of the audit, and writes nothing.
    certify(&workspace, &["--count", "20"]);
    assert_eq!(read(&workspace, "certificate/certificate.json"), before);
    assert_eq!(read(&workspace, "certificate/review-1.csv"), page);
    let certify = |more: &[&str]| workspace.run(&[&CERTIFY[..], more].concat()).with_code(2);
    let refused =
        workspace.run(&["certify", "run", "--pool", "vectors.npy", "--labels", "labels.csv"]).with_code(2);
    refused.reports(&[
        "certificate.json is for other labels: its limit is 10%, not 5%",
        "begin a new one with another --out",
    ]);
    planted::write_labels(&workspace.path("labels.csv"), 0, 100);
    certify(&[])
        .reports(&["the pool has changed: 800 of its 810 samples are among the 800 unlabelled ones now"]);
    planted::write_labels(&workspace.path("labels.csv"), 0, 90);
    fs::write(workspace.path("foreign.csv"), "file,label\n0,ant\n").unwrap();
    certify(&["--answers", "foreign.csv"]).reports(&["foreign.csv: line 2: 0 is not a row of this audit"]);
    certify(&["--answers", "certificate/review-1.csv", "--out", "other"])
        .reports(&["other: there is no certificate yet"]);
    // A certificate is the state of an audit, so a changed one is not continued.
    answer(&workspace, "certificate/review-1.csv", "anna.csv", 20);
    fs::write(
        workspace.path("certificate/certificate.json"),
        before.replacen("\"delta\": 0.05", "\"delta\": 0.5", 1),
    )
    .unwrap();
    certify(&["--answers", "anna.csv"])
        .reports(&["was changed since calmix wrote it: the hash of certificate.json"]);
    for (text, problem) in [
        ("", "not a certificate: EOF"),
        ("[]", "not a certificate: invalid length 0"),
        ("{\"format\": 1}", "not a certificate: invalid type"),
        (
            &before.replacen("calmix certificate 1", "calmix certificate 9", 1),
            "expected calmix certificate 1",
        ),
        (&before.replacen("\"claims\"", "\"claim\"", 1), "not a certificate: unknown field"),
        (&before.replacen("\"rows\": ", "\"rows\": -", 1), "not a certificate: invalid value"),
    ] {
        fs::write(workspace.path("certificate/certificate.json"), text).unwrap();
        certify(&["--answers", "anna.csv"]).reports(&[problem]);
        workspace
            .run(&["verify", "certificate/certificate.json", "vectors.npy"])
            .with_code(2)
            .reports(&[problem]);
    }
    fs::write(workspace.path("certificate/certificate.json"), &before).unwrap();
    fs::write(workspace.path("certificate/labels.csv"), "id,label\n").unwrap();
    workspace
        .run(&["verify", "certificate/certificate.json", "vectors.npy"])
        .with_code(2)
        .reports(&["labels.csv, line 1"]);
    for error in ["0", "0.9", "nan"] {
        let run = ["certify", "run", "--pool", "vectors.npy", "--error", error];
        workspace.run(&run).with_code(2).reports(&["--error is", "expected a share from 0.001 to 0.5"]);
    }
}
