use std::fs;
use std::path::PathBuf;

use calmix_core::rng::{Domain, Seed, Stream};
use calmix_testkit::npy_file;
use serde_json::{Value, json};

use super::*;
use crate::certificate::document::{CERTIFICATE, ModelName, PoolSummary};
use crate::certificate::labels_file::{LABELS, LabelRow};
use crate::certificate::{LoggedAnswer, vector_contents};

const ROWS: usize = 300;
const WIDTH: usize = 3;
/// Mutations of each kind: 200 of all.
const MUTATIONS: u64 = 50;

/// A folder with a certified pool of vectors.
struct Scene {
    folder: tempfile::TempDir,
    certificate: Certificate,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut npy = npy_file::header("<f4", &[ROWS, WIDTH]);
        (0..ROWS * WIDTH).for_each(|n| npy.extend((n as f32).to_le_bytes()));
        fs::write(folder.path().join("pool.npy"), npy).unwrap();
        let contents = vector_contents(&folder.path().join("pool.npy"), None).unwrap();
        let row = |n: usize| LabelRow {
            id: n.to_string(),
            predicted: Some((["cat", "dog"][n % 2].to_owned(), 1.0 - n as f64 * 2e-4)),
            content: contents[&n.to_string()].clone(),
        };
        let (labels, text) = LabelsFile::new((0..ROWS).map(row).collect()).unwrap();
        fs::write(folder.path().join(LABELS), text).unwrap();
        let plan = AuditPlan::of(&labels, 0.05, 0.05);
        let order = plan.order();
        let answer = |place: usize| {
            let row = &labels.rows[order[place] as usize];
            LoggedAnswer {
                place: place as u64,
                id: row.id.clone(),
                review: "anna".to_owned(),
                // One is wrong, one is skipped.
                label: match place {
                    7 => None,
                    11 => Some("owl".to_owned()),
                    _ => row.predicted.clone().map(|(label, _)| label),
                },
                time: "2026-11-19T20:00:00Z".to_owned(),
            }
        };
        let answers: Vec<LoggedAnswer> = (0..order.len() - 5).map(answer).collect();
        let result = AuditResult::of(&labels, &plan, &answers).unwrap();
        assert!(result.certified_rows > 0);
        let fingerprint = labels.fingerprint();
        let certificate = Certificate {
            format: Certificate::format(),
            hash: String::new(),
            claims: claims(ROWS as u64, &plan, &result).to_vec(),
            pool: PoolSummary { kind: PoolKind::Vectors, rows: ROWS as u64, fingerprint },
            model: ModelName { run: "run".to_owned(), blake3: "0a".to_owned(), calmix: "0.1.0".to_owned() },
            created: "2026-11-19T20:00:00Z".to_owned(),
            labels_sha256: labels.sha256,
            plan,
            result,
            answers,
        };
        let mut scene = Self { folder, certificate };
        let sealed = scene.certificate.seal().unwrap();
        fs::write(scene.path(CERTIFICATE), sealed).unwrap();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns whether a verification of the files, as they are now, finds something.
    fn finds_something(&self) -> bool {
        let Ok((certificate, is_intact)) = Certificate::read(&self.path(CERTIFICATE)) else { return true };
        let Ok(labels) = LabelsFile::read(&self.path(LABELS)) else { return true };
        let Ok(found) = Verification::of(&certificate, is_intact, &labels) else { return true };
        let kind = certificate.pool.kind;
        let pool = verify_contents(kind, &self.path("pool.npy"), None, &labels, &mut |_| true);
        !found.problems.is_empty() || pool.is_ok_and(|problems| !problems.is_empty())
    }

    /// Changes a byte of a file behind `start`, and puts it back.
    fn is_flip_found(&self, name: &str, start: usize, stream: &mut Stream) -> bool {
        let before = fs::read(self.path(name)).unwrap();
        let mut bytes = before.clone();
        let at = start + stream.index(bytes.len() - start);
        bytes[at] ^= 1 << stream.index(8);
        fs::write(self.path(name), bytes).unwrap();
        let is_found = self.finds_something();
        fs::write(self.path(name), before).unwrap();
        is_found
    }

    /// Writes a changed certificate with the hash of the change, as a user who knows the format could.
    fn is_sealed_change_found(&self, change: impl FnOnce(&mut Value)) -> bool {
        let mut value = serde_json::to_value(&self.certificate).unwrap();
        change(&mut value);
        let mut changed: Certificate = serde_json::from_value(value).unwrap();
        assert_ne!(changed, self.certificate);
        fs::write(self.path(CERTIFICATE), changed.seal().unwrap()).unwrap();
        let is_found = self.finds_something();
        let mut certificate = self.certificate.clone();
        fs::write(self.path(CERTIFICATE), certificate.seal().unwrap()).unwrap();
        is_found
    }
}

#[test]
fn two_hundred_mutations_are_found() {
    let scene = Scene::new();
    assert!(!scene.finds_something());
    let header = fs::metadata(scene.path("pool.npy")).unwrap().len() as usize - 4 * ROWS * WIDTH;
    for mutation in 0..MUTATIONS {
        let mut stream = Seed(1).stream(Domain::Bootstrap, 0, mutation);
        assert!(scene.is_flip_found(CERTIFICATE, 0, &mut stream), "certificate, {mutation}");
        assert!(scene.is_flip_found(LABELS, 0, &mut stream), "labels, {mutation}");
        assert!(scene.is_flip_found("pool.npy", header, &mut stream), "pool, {mutation}");
        // A right answer becomes a wrong one, one that is skipped, or one about another row; or it is left out.
        let answers = scene.certificate.answers.len();
        let at = [20 + stream.index(answers - 20), stream.index(5)][stream.index(2)];
        let kind = mutation % 4;
        let is_found = scene.is_sealed_change_found(|value| {
            let answers = value["answers"].as_array_mut().unwrap();
            match kind {
                0 => answers[at]["label"] = json!("owl"),
                1 => answers[at]["label"] = Value::Null,
                2 => answers[at]["id"] = json!("999"),
                _ => drop(answers.remove(at)),
            }
        });
        assert!(is_found, "answer {at}, kind {kind}");
    }
    assert!(!scene.finds_something(), "every change was undone");
}

/// Whoever changes a field also seals it: what follows from the data is recomputed, so it is found all the same.
#[test]
fn sealed_changes_of_every_computed_field_are_found() {
    let scene = Scene::new();
    let changes: [(&str, Value); 16] = [
        ("/claims/0", json!("All labels are right.")),
        ("/pool/kind", json!("images")),
        ("/pool/rows", json!(ROWS + 1)),
        ("/pool/fingerprint", json!("00")),
        ("/labels_sha256", json!("00")),
        ("/plan/error", json!(0.04)),
        ("/plan/delta", json!(0.5)),
        ("/plan/delta", json!(0.0)),
        ("/plan/seed", json!("0123456789abcdef")),
        ("/plan/order_sha256", json!("00")),
        ("/plan/shares", json!([10])),
        ("/result/certified_rows", json!(ROWS)),
        ("/result/shares/0/highest_error", json!(0.0)),
        ("/result/shares/0/wrong", json!(0)),
        ("/result/changed_answers", json!(1)),
        ("/answers/3/place", json!(u64::MAX)),
    ];
    for (field, to) in changes {
        assert!(scene.is_sealed_change_found(|value| *value.pointer_mut(field).unwrap() = to), "{field}");
    }
}

/// A changed list of labels whose hash is written into the certificate: another list is another draw.
#[test]
fn sealed_changes_of_labels_are_found() {
    let scene = Scene::new();
    let before = fs::read_to_string(scene.path(LABELS)).unwrap();
    let line = |n: usize| before.lines().nth(n).unwrap().to_owned();
    for changed in [
        before.replacen("cat", "dog", 1),
        before.replacen(&line(1), &line(1).replacen(",1,", ",0.9999,", 1), 1),
        before.replacen(&format!("{}\n", line(40)), "", 1),
        before.replacen(&format!("{}\n", line(ROWS)), "", 1),
    ] {
        assert_ne!(changed, before);
        fs::write(scene.path(LABELS), &changed).unwrap();
        let labels = LabelsFile::read(&scene.path(LABELS)).unwrap();
        let is_found = scene.is_sealed_change_found(|value| {
            value["labels_sha256"] = json!(labels.sha256);
            value["pool"]["rows"] = json!(labels.rows.len());
            value["pool"]["fingerprint"] = json!(labels.fingerprint());
        });
        assert!(is_found);
    }
}
