//! Lists of labels: what is read, and what each likely mistake says.

#[path = "golden/scene.rs"]
mod scene;

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::manifest::Prepared;
use calmix_data::source::labels_csv::{self, LabelsCsvOptions, Unlisted};
use calmix_formats::labels::columns::LabelColumns;

use scene::{Scene, subsets};

fn prepare(scene: &Scene) -> Result<Prepared, DataError> {
    labels_csv::prepare(&scene.root(), &scene.target(), &LabelsCsvOptions::default())
}

#[test]
fn lists_of_both_names_and_any_line_ends() {
    let lists = [
        ("labels.csv", "file,label\na.png,cat\nsub/b.png,dog\nc.png,\n"),
        ("metadata.csv", "\u{feff}file_name,label\r\na.png,cat\r\nsub/b.png,dog\r\nc.png,\r\n"),
        ("metadata.csv", "labels,file_name\ncat,./a.png\n\"dog\",\"sub/b.png\"\n,c.png"),
    ];
    let mut fingerprints = Vec::new();
    for (name, list) in lists {
        let scene = Scene::new();
        scene.image("a.png").image("sub/b.png").image("c.png").file(name, list.as_bytes());
        let prepared = prepare(&scene).unwrap();
        assert_eq!(prepared.header.classes, ["cat", "dog"]);
        assert_eq!(subsets(&prepared), ["train 0 2", "unlabelled 2 1"]);
        let expected = [("a.png", Some(0)), ("sub/b.png", Some(1)), ("c.png", None)];
        assert_eq!(scene.samples(), expected.map(|(name, label)| (name.to_owned(), label)));
        assert!(prepared.unreadable.is_empty());
        fingerprints.push(prepared.header.fingerprint);
    }
    assert!(fingerprints.iter().all(|fingerprint| *fingerprint == fingerprints[0]));
}

#[test]
fn rows_in_another_order_are_another_dataset() {
    let fingerprint = |list: &str| {
        let scene = Scene::new();
        scene.image("a.png").image("b.png").file("labels.csv", list.as_bytes());
        prepare(&scene).unwrap().header.fingerprint
    };
    let first = fingerprint("file,label\na.png,x\nb.png,y\n");
    assert_ne!(first, fingerprint("file,label\nb.png,y\na.png,x\n"));
    assert_ne!(first, fingerprint("file,label\na.png,y\nb.png,x\n"));
}

#[test]
fn a_list_in_each_split() {
    let scene = Scene::new();
    scene.image("train/a.png").file("train/metadata.csv", b"file_name,label\na.png,cat\n");
    scene.image("test/a.png").file("test/metadata.csv", b"file_name,label\na.png,dog\n");
    let prepared = prepare(&scene).unwrap();
    assert_eq!(subsets(&prepared), ["train 0 1", "test 1 1"]);
    assert_eq!(scene.samples()[1], ("test/a.png".to_owned(), Some(1)));
}

#[test]
fn images_without_a_row_follow_the_option() {
    let scene = Scene::new();
    scene.image("a.png").image("b.png").image("sub/c.png").file("labels.csv", b"file,label\na.png,cat\n");
    let prepared = prepare(&scene).unwrap();
    assert_eq!(subsets(&prepared), ["train 0 1"]);
    let note = scene.sentence(&prepared.unreadable[0]);
    assert!(
        note.ends_with(
            "images without a row were left out (2): b.png, sub/c.png; to train on them without labels, add rows with an \
             empty label or set dataset.unlabelled=true"
        ),
        "{note}"
    );
    std::fs::remove_dir_all(scene.target()).unwrap();
    let options = LabelsCsvOptions { unlisted: Unlisted::Unlabelled, ..LabelsCsvOptions::default() };
    let prepared = labels_csv::prepare(&scene.root(), &scene.target(), &options).unwrap();
    assert_eq!(subsets(&prepared), ["train 0 1", "unlabelled 1 2"]);
    assert!(prepared.unreadable.is_empty());
}

#[test]
fn each_mistake_names_its_line_and_the_next_step() {
    let cases: [(&[u8], &str); 20] = [
        (
            b"a.png,cat\n",
            "line 1: no column names the image; the columns are: a.png, cat; if one of them does, use --path-column NAME; \
             if the header line is missing, add one with the column names (file, filename, filepath, path, …)",
        ),
        (b"file;label\na.png;cat\n", "line 1: columns are separated by ';'; separate them with commas"),
        (b"file\tlabel\n", "line 1: columns are separated by '\\t'; separate them with commas"),
        (
            b"file,tag\na.png,cat\n",
            "line 1: no column holds the label; the columns are: file, tag; if one of them does, use --label-column NAME; \
             if the header line is missing, add one with the column names (label, labels, labelname, class, …)",
        ),
        (
            b"file,label\na.png,cat, big\n",
            "line 2: the row has 3 fields, but the header has 2 columns; put fields that contain a comma in double \
             quotes",
        ),
        (
            b"file,label\na.png,cat\nb.png\n",
            "line 3: the row has 1 field, but the header has 2 columns; put fields that contain a comma in double \
             quotes",
        ),
        (
            b"file,label\na.png,cat\nz.png,cat\n",
            "line 3: there is no file z.png; correct the name, add the file or remove the row",
        ),
        (b"file,label\na,cat\n", "line 2: there is no file a; the file is called a.png: correct the name"),
        (
            b"file,label\nA.PNG,cat\n",
            "line 2: there is no file A.PNG; the file is called a.png: correct the name",
        ),
        (
            b"file,label\na.png,cat\nb.png,dog\na.png,dog\n",
            "line 4: a.png is already listed in line 2; keep one row per image",
        ),
        (
            b"file,label\n../a.png,cat\n",
            "line 2: the file name \"../a.png\" leads out of the folder; name files relative to this list",
        ),
        (
            b"file,label\n/etc/passwd,cat\n",
            "line 2: the file name \"/etc/passwd\" is absolute; name files relative \
             to this list",
        ),
        (
            b"file,label\nC:/a.png,cat\n",
            "line 2: the file name \"C:/a.png\" begins with a drive; name files \
             relative to this list",
        ),
        (
            b"file,label\nsub\\c.png,cat\n",
            "line 2: the file name \"sub//c.png\" contains a backslash where / is meant; name files relative \
             to this list",
        ),
        (
            b"file,label\na\0.png,cat\n",
            "line 2: the file name \"a/0.png\" contains a NUL; name files relative to this list",
        ),
        (b"file,label\n,cat\n", "line 2: the file name \"\" is empty; name files relative to this list"),
        (b"file,label\na.png, cat\n", "line 2: the label \" cat\" has spaces around it; remove them"),
        (b"file,label\na.png,\xe9t\xe9\n", "line 2: not UTF-8; save the list as \"CSV UTF-8\""),
        (b"file,label\nsub,cat\n", "line 2: sub is a folder; write one row per image in it"),
        (b"\xff\xfef\0i\0l\0e\0", "line 1: not UTF-8; save the list as \"CSV UTF-8\""),
    ];
    for (list, expected) in cases {
        let scene = Scene::new();
        scene.image("a.png").image("b.png").image("sub/c.png").file("labels.csv", list);
        assert_eq!(scene.refusal(prepare(&scene)), format!("labels.csv, {expected}").replace("\\t", "/t"));
    }
    let whole: [(&[u8], &str); 3] = [
        (b"", "labels.csv: the list has no rows; write the header `file,label` and one line per image"),
        (
            b"file,label\n",
            "labels.csv: the list has no rows; write the header `file,label` and one line per image",
        ),
        (
            b"file,label\na.png,\n",
            "labels.csv: no row has a label; fill in the label column for some images of each class",
        ),
    ];
    for (list, expected) in whole {
        let scene = Scene::new();
        scene.image("a.png").file("labels.csv", list);
        assert_eq!(scene.refusal(prepare(&scene)), expected);
    }
}

#[test]
fn missing_values_and_long_names_are_not_classes() {
    let long = "x".repeat(100_000);
    for (label, expected) in [
        (
            "NaN",
            "the label is \"NaN\", which stands for a missing value; leave it empty if the sample is unlabelled",
        ),
        (long.as_str(), "has 100000 bytes, expected at most 1024"),
    ] {
        let scene = Scene::new();
        let list = format!("file,label\na.png,cat\nb.png,{label}\n");
        scene.image("a.png").image("b.png").file("labels.csv", list.as_bytes());
        let refusal = scene.refusal(prepare(&scene));
        assert!(refusal.starts_with("labels.csv, line 3: ") && refusal.contains(expected), "{refusal}");
    }
    let scene = Scene::new();
    scene.image("a.png").image("b.png").file("labels.csv", b"file,label\na.png,cat\nb.png,NA\n");
    let prepared = prepare(&scene).unwrap();
    assert_eq!(prepared.header.classes, ["NA", "cat"]);
    let warnings: Vec<String> = prepared.warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.join("\n").contains("1 sample has the class `NA`"), "{warnings:?}");
}

#[test]
fn empty_lines_name_no_image() {
    let scene = Scene::new();
    scene.image("a.png").image("b.png").file("labels.csv", b"file,label\n\na.png,cat\n\n\nb.png,dog\n\n");
    prepare(&scene).unwrap();
    let expected = [("a.png", Some(0)), ("b.png", Some(1))];
    assert_eq!(scene.samples(), expected.map(|(name, label)| (name.to_owned(), label)));
}

#[test]
fn group_column_is_read() {
    let scene = Scene::new();
    scene.image("a.png").image("b.png").image("c.png").image("d.png").image("e.png");
    let list = "file,Group,label\na.png,Anna,cat\nb.png,7,dog\nc.png,,dog\nd.png,Anna,\ne.png,7,cat\n";
    scene.file("labels.csv", list.as_bytes());
    let prepared = prepare(&scene).unwrap();
    assert_eq!(prepared.header.groups, Some(2));
    let dataset = Dataset::open(&scene.target(), &scene.root()).unwrap();
    let groups: Vec<Option<u32>> = (0..5).map(|id| dataset.group(id).unwrap()).collect();
    // The samples are a, b, c, e and then d, which has no label.
    assert_eq!(groups, [Some(0), Some(1), None, Some(1), Some(0)]);
}

#[test]
fn group_column_can_hold_the_labels() {
    let scene = Scene::new();
    scene.image("a.png").image("b.png").file("labels.csv", b"file,group\na.png,x\nb.png,y\n");
    let columns = LabelColumns { path: None, label: Some("group".into()) };
    let options = LabelsCsvOptions { columns, ..LabelsCsvOptions::default() };
    let prepared = labels_csv::prepare(&scene.root(), &scene.target(), &options).unwrap();
    assert_eq!((prepared.header.classes.len(), prepared.header.groups), (2, None));
}

#[test]
fn each_mistake_about_groups_names_its_line() {
    let long = format!("file,label,group\na.png,cat,{}\n", "x".repeat(1_025));
    let missing = "which may stand for a missing value; leave it empty if the sample is a group of its own, or rename the group";
    let cases = [
        ("file,label,group,Group\n", "line 1: `group` and `Group` both name the group; keep one".to_owned()),
        ("file,label,group\na.png,cat,nan\n", format!("line 2: the group is \"nan\", {missing}")),
        ("file,label,group\na.png,cat,-1\n", format!("line 2: the group is \"-1\", {missing}")),
        (
            "file,label,group\na.png,cat,\" p1\"\n",
            "line 2: the group \" p1\" has spaces around it; remove them".to_owned(),
        ),
        (&long, "line 2: the name of the group has 1025 bytes, expected at most 1024".to_owned()),
    ];
    for (list, expected) in cases {
        let scene = Scene::new();
        scene.image("a.png").file("labels.csv", list.as_bytes());
        let refusal = scene.refusal(prepare(&scene));
        assert!(refusal.ends_with(&expected), "{refusal}\n{expected}");
    }
}
