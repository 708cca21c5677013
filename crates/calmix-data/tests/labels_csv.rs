//! Lists of labels: what is read, and what each likely mistake says.

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::manifest::Prepared;
use calmix_data::source::labels_csv::{self, LabelsCsvOptions, Unlisted};
use calmix_formats::labels::columns::LabelColumns;

use crate::scene::{Scene, subsets};

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
    let expected = "images without a row were left out (2): b.png, sub/c.png; to train on them without labels, add rows \
                    with an empty label or set dataset.unlabelled=true";
    assert!(scene.left_out(&prepared)[0].ends_with(expected), "{:?}", prepared.unreadable);
    std::fs::remove_dir_all(scene.target()).unwrap();
    let options = LabelsCsvOptions { unlisted: Unlisted::Unlabelled, ..LabelsCsvOptions::default() };
    let prepared = labels_csv::prepare(&scene.root(), &scene.target(), &options).unwrap();
    assert_eq!(subsets(&prepared), ["train 0 1", "unlabelled 1 2"]);
    assert!(prepared.unreadable.is_empty());
}

/// What is said of this list in a folder with `a.png`, `b.png` and `sub/c.png`.
fn refusal(list: &[u8]) -> String {
    let scene = Scene::new();
    scene.image("a.png").image("b.png").image("sub/c.png").file("labels.csv", list);
    scene.refusal(prepare(&scene))
}

#[test]
fn each_mistake_names_its_line_and_the_next_step() {
    let column = "if the header line is missing, add one with the column names";
    let commas = "put fields that contain a comma in double quotes";
    let utf8 = "not UTF-8; save the list as \"CSV UTF-8\"";
    for (list, expected) in [
        (
            &b"a.png,cat\n"[..],
            format!(
                "1: no column names the image; the columns are: a.png, cat; if one of them does, use --path-column NAME; \
                 {column} (file, filename, filepath, path, …)"
            ),
        ),
        (b"file;label\na.png;cat\n", "1: columns are separated by ';'; separate them with commas".into()),
        (b"file\tlabel\n", "1: columns are separated by '/t'; separate them with commas".into()),
        (
            b"file,tag\na.png,cat\n",
            format!(
                "1: no column holds the label; the columns are: file, tag; if one of them does, use --label-column NAME; \
                 {column} (label, labels, labelname, class, …)"
            ),
        ),
        (b"\xff\xfef\0i\0l\0e\0", format!("1: {utf8}")),
        (b"file,label\na.png,\xe9t\xe9\n", format!("2: {utf8}")),
    ] {
        assert_eq!(refusal(list), format!("labels.csv, line {expected}"));
    }
    for (rows, expected) in [
        ("a.png,cat, big", format!("2: the row has 3 fields, but the header has 2 columns; {commas}")),
        ("a.png,cat\nb.png", format!("3: the row has 1 field, but the header has 2 columns; {commas}")),
        (
            "a.png,cat\nz.png,cat",
            "3: there is no file z.png; correct the name, add the file or remove the row".into(),
        ),
        ("a,cat", "2: there is no file a; the file is called a.png: correct the name".into()),
        ("A.PNG,cat", "2: there is no file A.PNG; the file is called a.png: correct the name".into()),
        (
            "a.png,cat\nb.png,dog\na.png,dog",
            "4: a.png is already listed in line 2; keep one row per image".into(),
        ),
        ("a.png, cat", "2: the label \" cat\" has spaces around it; remove them".into()),
        ("sub,cat", "2: sub is a folder; write one row per image in it".into()),
    ] {
        assert_eq!(
            refusal(format!("file,label\n{rows}\n").as_bytes()),
            format!("labels.csv, line {expected}")
        );
    }
    for (name, problem) in [
        ("../a.png", "\"../a.png\" leads out of the folder"),
        ("/etc/passwd", "\"/etc/passwd\" is absolute"),
        ("C:/a.png", "\"C:/a.png\" begins with a drive"),
        ("sub\\c.png", "\"sub//c.png\" contains a backslash where / is meant"),
        ("a\0.png", "\"a/0.png\" contains a NUL"),
        ("", "\"\" is empty"),
    ] {
        let expected =
            format!("labels.csv, line 2: the file name {problem}; name files relative to this list");
        assert_eq!(refusal(format!("file,label\n{name},cat\n").as_bytes()), expected);
    }
    let no_rows = "the list has no rows; write the header `file,label` and one line per image";
    for (list, expected) in [
        ("", no_rows),
        ("file,label\n", no_rows),
        (
            "file,label\na.png,\n",
            "no row has a label; fill in the label column for some images of each class",
        ),
    ] {
        assert_eq!(refusal(list.as_bytes()), format!("labels.csv: {expected}"));
    }
}

#[test]
fn missing_values_and_long_names_are_not_classes() {
    let long = "x".repeat(100_000);
    let missing = "which stands for a missing value; leave it empty if the sample is unlabelled";
    for (label, expected) in [
        ("NaN", format!("the label is \"NaN\", {missing}")),
        (&long, "has 100000 bytes, expected at most 1024".into()),
    ] {
        let refusal = refusal(format!("file,label\na.png,cat\nb.png,{label}\n").as_bytes());
        assert!(refusal.starts_with("labels.csv, line 3: ") && refusal.contains(&expected), "{refusal}");
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
    let long = format!("\na.png,cat,{}\n", "x".repeat(1_025));
    let missing = "which may stand for a missing value; leave it empty if the sample is a group of its own, or rename the group";
    for (rows, expected) in [
        (",Group\n", "line 1: `group` and `Group` both name the group; keep one".to_owned()),
        ("\na.png,cat,nan\n", format!("line 2: the group is \"nan\", {missing}")),
        ("\na.png,cat,-1\n", format!("line 2: the group is \"-1\", {missing}")),
        ("\na.png,cat,\" p1\"\n", "line 2: the group \" p1\" has spaces around it; remove them".into()),
        (&long, "line 2: the name of the group has 1025 bytes, expected at most 1024".into()),
    ] {
        let refusal = refusal(format!("file,label,group{rows}").as_bytes());
        assert!(refusal.ends_with(&expected), "{refusal}\n{expected}");
    }
}
