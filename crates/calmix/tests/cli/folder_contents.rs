//! What is in a folder, truly: empty classes, few images, duplicates, and files that one bad name must not hide.

use std::fs;

use serde_json::Value;

use super::new_workspace;

#[test]
fn scan_counts_by_split_and_lists_problems() {
    let workspace = new_workspace();
    workspace.images("photos/train/cat", 0, 30);
    workspace.images("photos/train/dog", 60, 3);
    workspace.images("photos/test/cat", 120, 4);
    workspace.images("photos/test/dog", 180, 4);
    fs::create_dir_all(workspace.path("photos/train/newt")).unwrap();
    fs::create_dir_all(workspace.path("photos/train/notes")).unwrap();
    fs::write(workspace.path("photos/train/notes/todo.txt"), "more newts").unwrap();
    fs::write(workspace.path("photos/old.tar"), "a backup").unwrap();
    let prepared = workspace.run(&["prepare", "photos"]).with_code(0);
    prepared.prints(&[
        "2 classes, labelled images per class: train 3 to 30, test 4\n",
        "photos/train/newt: there is no image in it, so it is not a class",
        "photos/train/notes: there is no image in it, so it is not a class",
        "photos/old.tar: this archive beside the image folders was not read",
        "warning: the classes of train are imbalanced: 30 samples of `cat`, 3 of `dog`",
    ]);
}

#[cfg(target_os = "linux")]
#[test]
fn one_bad_name_or_link_is_listed() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    let workspace = new_workspace().with_photos();
    let photos = workspace.path("photos");
    let image = fs::read(photos.join("dog/3.png")).unwrap();
    fs::write(photos.join(OsStr::from_bytes(b"cat/caf\xe9.png")), &image).unwrap();
    fs::create_dir(photos.join(OsStr::from_bytes(b"dog\xe9"))).unwrap();
    symlink(photos.join("dog"), photos.join("cat/dogs")).unwrap();
    symlink("/etc/hostname", photos.join("cat/out.png")).unwrap();
    symlink("nowhere.png", photos.join("cat/broken-link.png")).unwrap();
    fs::write(photos.join("cat/back\\slash.png"), &image).unwrap();
    fs::write(photos.join("cat/new\nline\u{1b}[31m.png"), &image[..20]).unwrap();
    let prepared = workspace.run(&["prepare", "photos"]).with_code(0);
    prepared.prints(&[
        "32 samples: train 20, unlabelled 12\n",
        "8 files or folders were left out:\n",
        "photos/cat/caf\u{fffd}.png: its name is not UTF-8; rename it",
        "photos/dog\u{fffd}: its name is not UTF-8; rename it",
        "photos/cat/dogs: a link to a folder; calmix does not follow it",
        "photos/cat/out.png: a link that leads out of the dataset folder",
        "photos/cat/broken-link.png: a broken link",
        "photos/cat/back\\slash.png: its name contains a backslash",
        "photos/cat/new\\nline\\u{1b}[31m.png: ",
    ]);
    assert!(!prepared.stdout.contains('\u{1b}'));
    workspace
        .run(&["inspect", "photos"])
        .with_code(0)
        .prints(&["dataset, folder\n", "its name is not UTF-8"]);
    let report = fs::read_to_string(workspace.path("prepared/photos/report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["unreadable"].as_array().unwrap().len(), 8);
}

#[test]
fn duplicates_have_names() {
    let workspace = new_workspace();
    workspace.images("photos/train/cat", 0, 4);
    workspace.images("photos/train/dog", 60, 4);
    workspace.images("photos/test/cat", 120, 4);
    workspace.images("photos/test/dog", 180, 4);
    fs::copy(workspace.path("photos/train/cat/1.png"), workspace.path("photos/test/cat/copy.png")).unwrap();
    fs::copy(workspace.path("photos/train/cat/2.png"), workspace.path("photos/train/dog/copy.png")).unwrap();
    workspace.run(&["prepare", "photos"]).with_code(0).prints(&[
        "warning: 1 sample appears in two subsets: train/cat/1.png = test/cat/copy.png\n",
        "warning: 1 sample appears under two labels: train/cat/2.png = train/dog/copy.png\n",
    ]);
}

#[test]
fn a_report_for_programs() {
    let workspace = new_workspace().with_photos();
    let output = workspace.run(&["prepare", "photos", "--json"]).with_code(0);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(json["kind"], "dataset");
    assert_eq!((&json["folder"], &json["prepared"]), (&"photos".into(), &"prepared/photos".into()));
    assert_eq!(json["source"], "folder");
    assert_eq!(
        json["classes"][0],
        serde_json::json!({ "name": "cat", "labelled": 10, "subsets": { "train": 10 } })
    );
    assert_eq!(json["unreadable"].as_array().unwrap().len(), 1);
    let report = fs::read_to_string(workspace.path("prepared/photos/report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    for field in ["fingerprint", "subsets", "classes", "unreadable", "warnings"] {
        assert_eq!(report[field], json[field], "{field}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_place_that_cannot_be_written_is_named() {
    let workspace = new_workspace().with_photos();
    workspace
        .run(&["prepare", "photos", "--to", "/proc/calmix/photos"])
        .with_code(2)
        .reports(&["error: /proc/calmix: ", "try: name a folder that you can write to with `--to`\n"]);
}

/// The recipe that `prepare` suggests for garments wants 25 labels of each class.
#[test]
fn short_labels_of_the_suggested_recipe_are_warned_about() {
    let workspace = new_workspace().with_garments();
    workspace.run(&["prepare", "garments", "--source", "fashion-mnist"]).with_code(0).prints(&[
        "warning: recipe cpu-fashion-mnist: labels.count requests 25 labels per class, but 10 of 10 classes have fewer: \
         `T-shirt/top` 10, ",
    ]);
}
