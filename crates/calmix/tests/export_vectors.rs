//! `calmix export` of a run on vectors, as a user runs it: where it can be written.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::planted::{calmix, text, write_labels, write_npy};

/// Nobody writes below `/proc`, and only folders have files in them.
#[test]
fn unwritable_place_is_a_mistake() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path();
    write_npy(&folder.join("vectors.npy"), 0..90, false);
    write_labels(&folder.join("labels.csv"), 0, 30);
    let train =
        ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run", "--quiet"];
    let trained = calmix(folder, &[&train[..], &["--set", "network.folds=3", "--threads", "1"]].concat());
    assert_eq!(trained.status.code(), Some(0), "{}", text(&trained));
    for (place, named) in [("/proc/exported", "/proc"), ("labels.csv/exported", "labels.csv")] {
        let output = calmix(folder, &["export", "run", "--to", place]);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{place}: {said}");
        assert!(said.contains(&format!("error: {named}: cannot write here: ")), "{said}");
        assert!(said.contains("try: name a folder that you can write to with --to"), "{said}");
    }
    // The folder of an export is as open as the user's other folders.
    let output = calmix(folder, &["export", "run", "--to", "exported"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    fs::create_dir(folder.join("usual")).unwrap();
    let mode = |name: &str| fs::metadata(folder.join(name)).unwrap().permissions().mode();
    assert_eq!(mode("exported"), mode("usual"));
}
