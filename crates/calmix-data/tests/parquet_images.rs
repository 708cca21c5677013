//! Images in Parquet files: every pixel, label and split of files that pyarrow wrote, the same table as from a folder, and
//! hostile files.

mod made;

use std::fs;
use std::path::{Path, PathBuf};

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::prepare::{Report, SourceStamp, Stale, prepare};
use calmix_data::source::parquet_images::has_images;
use calmix_data::source::{FolderLayout, SourceSpec};
use calmix_formats::labels::columns::LabelColumns;
use calmix_formats::vectors::{VectorOptions, VectorSource};

use made::{Column, HUB, hub, metadata};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/parquet_images").join(name)
}

fn source(label: Option<&str>) -> SourceSpec {
    SourceSpec::Parquet { columns: LabelColumns { path: None, label: label.map(str::to_owned) } }
}

fn prepared(root: &Path, target: &Path) -> Result<(Dataset, Report), DataError> {
    let report = prepare(&source(None), root, target)?;
    Ok((Dataset::open(target, root)?, report))
}

/// The pixels of an image, as `parquet_images.py` writes them.
fn pixels(image: u64) -> Vec<u8> {
    let at = |y: u64, x: u64, c: u64| ((37 * image + 16 * y + 4 * x + 50 * c) % 256) as u8;
    (0..4).flat_map(|y| (0..4).flat_map(move |x| (0..3).map(move |c| at(y, x, c)))).collect()
}

fn label(image: u64) -> Option<u32> {
    (image % 7 != 3).then_some((image % 3) as u32)
}

#[test]
fn every_pixel_label_and_split_is_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = golden("hub");
    assert!(has_images(&root) && has_images(&root.join("data")) && has_images(&golden("plain")));
    let (dataset, report) = prepared(&root, &folder.path().join("prepared")).unwrap();
    assert_eq!(dataset.classes(), ["cat", "dog", "emu"]);
    assert!(report.unreadable.is_empty(), "{:?}", report.unreadable);
    let splits = [("train", 0..16), ("val", 19..21), ("test", 16..19), ("unlabelled", 21..24)];
    for (name, images) in splits {
        let ids = dataset.subset(name).unwrap();
        assert_eq!(ids.end - ids.start, images.end - images.start, "{name}");
        for (id, image) in ids.zip(images) {
            let decoded = dataset.image(id).unwrap();
            assert_eq!((decoded.width(), decoded.height()), (4, 4));
            assert_eq!(decoded.pixels(), pixels(image), "{name}, image {image}");
            let expected = if name == "unlabelled" { None } else { label(image) };
            assert_eq!(dataset.label(id).unwrap(), expected, "{name}, image {image}");
        }
    }
    dataset.verify().unwrap();
    assert_eq!(dataset.part(0).unwrap().path, "images-00000.bin");
}

#[test]
fn file_of_images_is_not_one_of_vectors() {
    let error = VectorSource::open(&golden("plain/0000.parquet"), &VectorOptions::default()).unwrap_err();
    assert!(error.to_string().contains("it holds images: pass its folder"), "{error}");
}

#[test]
fn plain_bytes_without_metadata_have_numbered_classes() {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, _) = prepared(&golden("plain"), &folder.path().join("prepared")).unwrap();
    assert_eq!(dataset.classes(), ["0", "1", "2"]);
    for image in 0..16 {
        assert_eq!(dataset.image(image).unwrap().pixels(), pixels(image));
        assert_eq!(dataset.label(image).unwrap(), label(image));
    }
}

/// The images of the golden files, one after the other.
fn images() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, _) = prepared(&golden("plain"), &folder.path().join("prepared")).unwrap();
    let mut images = vec![Vec::new(); 16];
    (0..).zip(&mut images).for_each(|(id, bytes)| dataset.bytes(id, bytes).unwrap());
    images
}

#[test]
fn table_is_that_of_the_same_folder() {
    let folder = tempfile::tempdir().unwrap();
    let images = images();
    let rows: Vec<&[u8]> = images.iter().map(Vec::as_slice).collect();
    let places = "train/ant train/ant train/ant train/ant train/bee train/bee train/bee train/bee test/ant test/ant \
                  test/bee test/bee unlabelled unlabelled unlabelled unlabelled";
    for (number, (place, image)) in places.split(' ').zip(&images).enumerate() {
        let place = folder.path().join("photos").join(place);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(format!("{number:02}.png")), image).unwrap();
    }
    let files = folder.path().join("files");
    fs::create_dir(&files).unwrap();
    let names = ["ant", "bee"];
    let both = |count| -> Vec<_> { (0..2 * count).map(|row| Some(i64::from(row >= count))).collect() };
    fs::write(files.join("train.parquet"), hub(&rows[..8], &both(4), &names)).unwrap();
    fs::write(files.join("test.parquet"), hub(&rows[8..12], &both(2), &names)).unwrap();
    fs::write(files.join("unlabelled.parquet"), hub(&rows[12..], &[None; 4], &names)).unwrap();
    // Files without rows have no part and no subset.
    fs::write(files.join("val.parquet"), hub(&[], &[], &names)).unwrap();
    let (dataset, _) = prepared(&files, &folder.path().join("a")).unwrap();
    let from_folder = SourceSpec::Folder { layout: FolderLayout::Auto, shrink: 0, groups: 0 };
    let report = prepare(&from_folder, &folder.path().join("photos"), &folder.path().join("b")).unwrap();
    assert_eq!(report.samples(), 16);
    let other = Dataset::open(&folder.path().join("b"), &folder.path().join("photos")).unwrap();
    assert_eq!(dataset.header().subsets, other.header().subsets);
    assert_eq!(dataset.fingerprint(), other.fingerprint());
    // A table does not notice by itself that its files were written again: it has its own copy.
    let stamp = SourceStamp::read(&folder.path().join("a")).unwrap().unwrap();
    assert!(stamp.stale(&dataset, &source(None), &files).unwrap().is_none());
    let mut swapped = both(4);
    swapped.reverse();
    fs::write(files.join("train.parquet"), hub(&rows[..8], &swapped, &names)).unwrap();
    assert!(matches!(stamp.stale(&dataset, &source(None), &files).unwrap(), Some(Stale::Changed)));
}

#[test]
fn bad_image_is_left_out_with_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let images = images();
    let rows: [&[u8]; 3] = [&images[0], b"no image", &images[1]];
    let bytes = hub(&rows, &[Some(0), Some(1), Some(1)], &["a", "b"]);
    fs::write(folder.path().join("a.parquet"), bytes).unwrap();
    let (dataset, report) = prepared(folder.path(), &folder.path().join("prepared")).unwrap();
    assert_eq!((dataset.len(), dataset.image(1).unwrap().pixels()), (2, &*pixels(1)));
    let left_out: Vec<String> = report.unreadable.iter().map(ToString::to_string).collect();
    assert!(left_out.len() == 1 && left_out[0].contains("a.parquet, row 1: "), "{left_out:?}");
}

/// Prepares a dataset of these files, and returns the message of the refusal.
fn refusal(files: &[(&str, &[u8])], label: Option<&str>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    for (name, bytes) in files {
        fs::write(root.join(name), bytes).unwrap();
    }
    let error = prepare(&source(label), &root, &folder.path().join("prepared")).unwrap_err().to_string();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something is left: {error}");
    error
}

#[test]
fn hostile_rows_are_refused_by_file_and_row() {
    let images = images();
    let [a, b] = [images[0].as_slice(), &images[1]];
    let two = ["x", "y"];
    let file = |levels: &[i16], bytes: &[&[u8]], label| {
        made::file(HUB, &[Column::Bytes(levels, bytes), Column::Whole(&[1, 1], &[0, label])], &[])
    };
    let labelled = |label| hub(&[a, b], &[Some(0), Some(label)], &two);
    for (bytes, expected) in [
        (file(&[2, 0], &[a], 1), "t.parquet, row 1: there is no image in it"),
        (file(&[1, 2], &[a], 1), "t.parquet, row 0: there is no image in it"),
        (labelled(2), "t.parquet, row 1: the label is 2, but the metadata name 2 classes"),
        (labelled(-2), "t.parquet, row 1: the label is -2, expected less than"),
        (labelled(i64::MAX), "t.parquet, row 1: the label is 9223372036854775807"),
        (
            file(&[2, 2], &[a, b], 70_000),
            "t.parquet, row 1: the label is 70000, but only 2 different labels occur",
        ),
        (hub(&[a], &[Some(0)], &["x", "x"]), "t.parquet, metadata `huggingface`: the class name \"x\""),
        (hub(&[b"no"], &[Some(0)], &two), "none of the images"),
        (hub(&[], &[], &two), "the files have no rows"),
        (b"PAR1 and nothing else PAR1".to_vec(), "t.parquet: it cannot be read as Parquet"),
    ] {
        let error = refusal(&[("t.parquet", &bytes)], None);
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let other = hub(&[a], &[Some(0)], &["y", "x"]);
    let error = refusal(&[("a.parquet", &labelled(1)), ("b.parquet", &other)], None);
    assert!(
        error.contains("b.parquet: it has other class names, or in another order, than a.par"),
        "{error}"
    );
}

#[test]
fn columns_of_other_types_are_refused() {
    let images = images();
    let image: &[&[u8]] = &[&images[0]];
    let bytes = |level: &'static [i16]| Column::Bytes(level, image);
    let whole = || Column::Whole(&[1], &[0]);
    for (schema, columns, label, expected) in [
        ("optional int64 label;", vec![whole()], None, "it has no column of images"),
        ("optional binary image (STRING);", vec![bytes(&[1])], None, "it has no column of images"),
        (
            "optional group a { optional binary bytes; } optional group b { optional binary bytes; }",
            vec![bytes(&[2]), bytes(&[2])],
            None,
            "several columns could hold the image: a, b",
        ),
        (
            "optional binary image; optional binary label (STRING);",
            vec![bytes(&[1]), Column::Bytes(&[1], &[b"cat"])],
            None,
            "the column `label` holds the labels, but not as whole numbers",
        ),
        (
            "optional binary image; optional int64 fine_label;",
            vec![bytes(&[1]), whole()],
            None,
            "columns of whole numbers are: fine_label",
        ),
        (
            "optional binary image; optional int64 label;",
            vec![bytes(&[1]), whole()],
            Some("fine"),
            "there is no column `fine`",
        ),
    ] {
        let bytes = made::file(&format!("message schema {{ {schema} }}"), &columns, &[]);
        let error = refusal(&[("t.parquet", &bytes)], label);
        assert!(error.contains("t.parquet: ") && error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn label_column_can_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let images = images();
    let schema = "message schema { optional group img { optional binary bytes; } optional int64 coarse; optional int64 fine; }";
    let columns = [
        Column::Bytes(&[2, 2], &[&images[0], &images[1]]),
        Column::Whole(&[1, 1], &[0, 0]),
        Column::Whole(&[1, 1], &[1, 0]),
    ];
    let names = metadata(&["p", "q"]).replace("label", "fine");
    let bytes = made::file(schema, &columns, &[("huggingface", &names)]);
    fs::write(folder.path().join("a.parquet"), bytes).unwrap();
    prepare(&source(Some("fine")), folder.path(), &folder.path().join("prepared")).unwrap();
    let dataset = Dataset::open(&folder.path().join("prepared"), folder.path()).unwrap();
    assert_eq!((dataset.classes(), dataset.label(0).unwrap()), (&["p".into(), "q".into()][..], Some(1)));
}

/// A dictionary with one image, which all rows share.
#[test]
fn rows_that_share_an_image_do_not_fill_the_disk() {
    let mut images = images();
    // Bytes behind the end of an image do not make it another one.
    images[0].resize(1 << 13, 0);
    let rows = vec![images[0].as_slice(); 4_000];
    let bytes = hub(&rows, &vec![Some(0); rows.len()], &["a"]);
    assert!(bytes.len() < 1 << 15, "{}", bytes.len());
    let error = refusal(&[("t.parquet", &bytes)], None);
    assert!(error.contains("t.parquet, row ") && error.contains("probably an attack"), "{error}");
}

#[test]
fn file_cut_anywhere_is_refused() {
    let whole = fs::read(golden("hub/data/test-00000-of-00001.parquet")).unwrap();
    let footer = whole.len() - 100;
    for length in (0..footer).step_by(9).chain(footer..whole.len()) {
        let error = refusal(&[("t.parquet", &whole[..length])], None);
        assert!(error.contains("t.parquet"), "{length}: {error}");
    }
}

/// Three images with labels and a column `group`, of which the second row has no value.
fn with_groups(group: &str, column: Column<'_>) -> Vec<u8> {
    let images = images();
    let schema = format!(
        "message schema {{ optional group image {{ optional binary bytes; }} optional int64 label; {group} }}"
    );
    let columns = [
        Column::Bytes(&[2, 2, 2], &[&images[0], &images[1], &images[2]]),
        Column::Whole(&[1, 1, 1], &[0, 1, 0]),
        column,
    ];
    made::file(&schema, &columns, &[])
}

#[test]
fn group_column_is_read() {
    let text = with_groups("optional binary group (UTF8);", Column::Bytes(&[1, 0, 1], &[b"anna", b"anna"]));
    let whole = with_groups("optional int64 Group;", Column::Whole(&[1, 0, 1], &[7, 7]));
    for file in [text, whole] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.parquet"), file).unwrap();
        let (dataset, _) = prepared(folder.path(), &folder.path().join("prepared")).unwrap();
        let groups: Vec<Option<u32>> = (0..3).map(|id| dataset.group(id).unwrap()).collect();
        assert_eq!(groups, [Some(0), None, Some(0)]);
        dataset.verify().unwrap();
    }
}

#[test]
fn unusable_groups_name_their_row() {
    let missing = with_groups("optional int64 group;", Column::Whole(&[1, 0, 1], &[7, -1]));
    let error = refusal(&[("t.parquet", &missing)], None);
    assert!(error.contains("t.parquet, row 2: the group is \"-1\""), "{error}");
    let inside = "optional group group { optional binary bytes; }";
    let inside = with_groups(inside, Column::Bytes(&[2, 1, 2], &[b"a", b"b"]));
    let columns = SourceSpec::Parquet { columns: LabelColumns { path: Some("image".into()), label: None } };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.parquet"), inside).unwrap();
    let error = prepare(&columns, folder.path(), &folder.path().join("prepared")).unwrap_err().to_string();
    assert!(error.contains("the column `group` names the groups, but holds neither text nor"), "{error}");
}
