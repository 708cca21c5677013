//! `calmix predict --out FOLDER.parquet`: pyarrow reads back what CSV says.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use calmix_testkit::python::interpreter;
use calmix_testkit::tier;
use calmix_testkit::workspace::Workspace;
use serde_json::Value;

use super::fixture::Fixture;
use super::predict::{predict, rows};

/// Every row of the parts in the order of their names, as JSON lines with the fields of `--format jsonl`.
const READ_BACK: &str = "
import json, sys
from pathlib import Path
import pyarrow.dataset, pyarrow.parquet
folder = Path(sys.argv[1])
parts = sorted(folder.glob('*.parquet'))
rows = [row for part in parts for row in pyarrow.parquet.read_table(part).to_pylist()]
assert pyarrow.dataset.dataset(folder).count_rows() == len(rows)
types = {field.name: str(field.type) for field in pyarrow.parquet.read_schema(parts[0])}
about = pyarrow.parquet.read_schema(parts[0]).metadata
classes = json.loads(about[b'calmix.classes'])
print(json.dumps({'parts': len(parts), 'types': types, 'classes': classes}))
for row in rows:
    print(json.dumps(row))
";

/// The interpreter of an environment with pyarrow.
pub(crate) fn python() -> PathBuf {
    interpreter("pyarrow", "CALMIX_PYARROW_PYTHON")
}

/// What pyarrow finds in a folder: about the files, and the rows.
fn read_back(workspace: &Workspace, folder: &str) -> (Value, Vec<Value>) {
    let output = Command::new(python()).args(["-c", READ_BACK]).arg(workspace.path(folder)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut lines = rows(&String::from_utf8(output.stdout).unwrap());
    (lines.remove(0), lines)
}

/// A number of 32 bits is the same one whichever decimals it is written with.
fn bits(number: &Value) -> Option<u32> {
    number.as_f64().map(|number| (number as f32).to_bits())
}

#[test]
fn parquet_holds_the_rows_of_csv_and_json() {
    let workspace = Fixture::Photos.copy();
    let with =
        |out: &str| predict(&workspace, &["photos", "--probabilities", "--part-rows", "10", "--out", out]);
    for out in ["out.csv", "out.jsonl", "out.parquet"] {
        with(out).with_code(0).reports(&["33 images, ", "1 image could not be read"]);
    }
    let (about, found) = read_back(&workspace, "out.parquet");
    assert_eq!((&about["parts"], &about["classes"]), (&4.into(), &serde_json::json!(["cat", "dog"])));
    assert_eq!((&about["types"]["path"], &about["types"]["confidence"]), (&"string".into(), &"float".into()));
    assert_eq!(
        (&about["types"]["abstain"], &about["types"]["set"]),
        (&"bool".into(), &"list<element: string not null>".into())
    );
    let expected = rows(&fs::read_to_string(workspace.path("out.jsonl")).unwrap());
    let csv = fs::read_to_string(workspace.path("out.csv")).unwrap();
    assert_eq!((found.len(), csv.lines().count()), (33, 34));
    for ((found, json), csv) in found.iter().zip(&expected).zip(csv.lines().skip(1)) {
        for name in ["path", "label", "set", "abstain", "error"] {
            assert_eq!(found[name], json[name], "{name} of {json}");
        }
        for name in ["confidence", "margin"] {
            assert_eq!(bits(&found[name]), bits(&json[name]), "{name} of {json}");
        }
        let all =
            |row: &Value| row["probabilities"].as_array().map(|all| all.iter().map(bits).collect::<Vec<_>>());
        assert_eq!(all(found), all(json), "{json}");
        // No name of these needs quotes, but for the sentence of an error.
        if found["error"].is_null() {
            let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
            let set = found["set"]
                .as_array()
                .map(|set| set.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"));
            let numbers: Vec<f32> =
                [2, 3, 7, 8].map(|n| csv.split(',').nth(n).unwrap().parse().unwrap()).into();
            let fields: Vec<_> = csv.split(',').collect();
            assert_eq!(
                (fields[0], fields[1], fields[4]),
                (&*text("path"), &*text("label"), &*set.unwrap_or_default())
            );
            assert_eq!(
                fields[5],
                found["abstain"].as_bool().map(|abstain| abstain.to_string()).unwrap_or_default()
            );
            let floats = [
                &found["confidence"],
                &found["margin"],
                &found["probabilities"][0],
                &found["probabilities"][1],
            ];
            assert_eq!(numbers.iter().map(|n| Some(n.to_bits())).collect::<Vec<_>>(), floats.map(bits));
        }
    }
    assert!(
        found.iter().any(|row| row["set"].as_array().is_some_and(|set| !set.is_empty())),
        "no row has a set"
    );

    predict(&workspace, &["photos", "--format", "parquet"])
        .with_code(2)
        .reports(&["--out predictions.parquet"]);
    with("out.parquet").with_code(2).reports(&["out.parquet: already exists"]);
    // No image at all is a table of no rows.
    fs::write(workspace.path("none"), "").unwrap();
    predict(&workspace, &["--list", "none", "--out", "none.parquet"]).with_code(0);
    let (about, found) = read_back(&workspace, "none.parquet");
    assert_eq!((&about["parts"], found.len(), &about["types"]["label"]), (&1.into(), 0, &"string".into()));
}

/// Killed again and again, a folder ends with the rows of one that was never killed; others do not go on with it.
#[test]
fn a_killed_folder_goes_on_after_its_last_part() {
    let workspace = Fixture::Photos.copy();
    let list = (0..400).map(|n| format!("photos/dog/{}.png\n", n % 10)).collect::<Vec<_>>().concat();
    fs::write(workspace.path("list"), list + "photos/cat/broken.png\nphotos/cat/0.png\n").unwrap();
    let arguments = |out| ["--list", "list", "--out", out, "--batch", "4", "--part-rows", "30"];
    predict(&workspace, &arguments("whole.parquet")).with_code(0);
    let resumed = [&arguments("killed.parquet")[..], &["--resume"]].concat();
    let (mut ended, mut parts) = (false, Vec::new());
    for n in 0..20 {
        let mut command = workspace.command(&[&["predict", "run", "--threads", "1"], &resumed[..]].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(250 + 40 * (n % 10)));
        child.kill().unwrap();
        ended = child.wait().unwrap().success();
        let folder = fs::read_dir(workspace.path("killed.parquet"));
        parts.push(folder.map_or(0, Iterator::count));
        if ended {
            break;
        }
    }
    if !ended {
        predict(&workspace, &resumed).with_code(0);
    }
    let (about, found) = read_back(&workspace, "killed.parquet");
    let (_, whole) = read_back(&workspace, "whole.parquet");
    assert_eq!((about["parts"].as_u64(), found.len()), (Some(14), 402), "parts after each kill: {parts:?}");
    assert!(found == whole, "other rows");
    let names = |folder: &str| fs::read_dir(workspace.path(folder)).unwrap().count();
    assert_eq!(names("killed.parquet"), 14, "something besides the parts is left");
    predict(&workspace, &resumed).with_code(0).reports(&["0 images in addition to 402 from before"]);
    let other = [&resumed[..], &["--coverage", "0.8"]].concat();
    predict(&workspace, &other).with_code(2).reports(&["it was written with coverage 0.9, not 0.8"]);
    fs::write(workspace.path("list"), "photos/dog/1.png\n".repeat(402)).unwrap();
    predict(&workspace, &resumed)
        .with_code(2)
        .reports(&["image 402 is not the one that was predicted before"]);
}

/// A part and its line are on the disk before the next part, so their folder must be, too.
#[cfg(target_os = "linux")]
#[test]
fn folder_of_parts_survives_a_power_failure() {
    if !Command::new("strace").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return tier::skipped("there is no strace (Debian: strace)");
    }
    let workspace = Fixture::Photos.copy();
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-qq", "-o", "calls", "-e", "trace=fsync,mkdir,mkdirat,renameat"]);
    command.arg(crate::program::calmix());
    command.args(["predict", "run", "photos/cat", "--threads", "1", "--part-rows", "4"]);
    fs::create_dir(workspace.path("rows")).unwrap();
    command.args(["--out", "rows/out.parquet"]).current_dir(workspace.folder());
    workspace.end(command).with_code(0);
    let calls = fs::read_to_string(workspace.path("calls")).unwrap();
    let (_, made) = calls.split_once("out.parquet\", 0777").unwrap();
    let (before, after) = made.split_once("\"part-00000.parquet\")").unwrap();
    let is_synchronised = |calls: &str, ending: &str| {
        calls.lines().any(|line| line.contains("fsync(") && line.contains(&format!("{ending}>)")))
    };
    assert!(is_synchronised(before, "/rows"), "the folder of parts has its name: {calls}");
    let (between, _) = after.split_once("\"part-00001.parquet\")").unwrap();
    assert!(is_synchronised(between, "/out.parquet"), "the part has its name: {calls}");
    assert!(is_synchronised(between, "/out.parquet.parts.jsonl"), "its line is written: {calls}");
}
