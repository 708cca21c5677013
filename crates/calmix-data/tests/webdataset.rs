//! WebDataset shards.

use std::fs::{self, File};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::SystemTime;

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::loader::{FileBlocks, SampleIds};
use calmix_data::manifest::Prepared;
use calmix_data::source::Inspection;
use calmix_data::source::webdataset::{self, WebdatasetOptions};
use calmix_data::split::UnlabelledSet;
use calmix_testkit::photos::{Golden, crc32};

use crate::scene::{Scene, subsets};

/// Names and bytes.
type Members<'a> = &'a [(&'a str, &'a [u8])];

/// An archive of these members.
fn tar(members: Members<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, data) in members {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", data.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend(header);
        bytes.extend(*data);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.extend([0; 1_024]);
    bytes
}

fn prepare(scene: &Scene) -> Result<Prepared, DataError> {
    webdataset::prepare(&scene.root(), &scene.target(), &WebdatasetOptions::default())
}

#[test]
fn a_shard_of_the_package_reads_as_the_package_reads_it() {
    let golden = Golden::load();
    let scene = Scene::new();
    let shard = golden.bytes(golden.shard.file);
    scene.file("train-000000.tar", shard);
    let prepared = prepare(&scene).unwrap();
    assert_eq!(prepared.header.classes, ["0", "1", "2"]);
    assert_eq!(subsets(&prepared), ["train 0 6"]);
    for (record, expected) in scene.records().iter().zip(&golden.shard.samples) {
        let start = record.offset as usize;
        let image = &shard[start..start + record.length as usize];
        assert_eq!((crc32(image), record.label), (expected.crc, expected.label), "{}", expected.key);
        assert_eq!(crc32c::crc32c(image), record.checksum);
    }
}

#[test]
fn shards_belong_to_splits_by_name() {
    let scene = Scene::new();
    let image = scene.bytes_of("x");
    let one = |label: &'static [u8]| tar(&[("0.png", &image), ("0.cls", label)]);
    scene.file("photos-validation-0.tar", &one(b"1")).file("photos-train-1.tar", &one(b"0\n"));
    scene.file("photos-train-0.tar", &one(b" 2")).file("unlabeled/0.tar", &tar(&[("0.png", &image)]));
    scene.file("notes.txt", b"not a shard");
    let prepared = prepare(&scene).unwrap();
    assert_eq!(subsets(&prepared), ["train 0 2", "val 2 1", "unlabelled 3 1"]);
    assert_eq!(scene.labels(), [Some(2), Some(0), Some(1), None]);
}

#[test]
fn names_in_json_need_classes() {
    let scene = Scene::new();
    let image = scene.bytes_of("x");
    scene.file("0.tar", &tar(&[("0.png", &image), ("0.json", br#"{"label": "dog", "cls": 7}"#)]));
    assert_eq!(
        scene.refusal(prepare(&scene)),
        "0.tar, 0: the label \"dog\" is not a number; write the number of the class into the .cls member"
    );
    let classes = Some(vec!["cat".to_owned(), "dog".to_owned()]);
    let options = WebdatasetOptions { classes, ..WebdatasetOptions::default() };
    webdataset::prepare(&scene.root(), &scene.target(), &options).unwrap();
    assert_eq!(scene.samples(), [("0.tar".to_owned(), Some(1))]);
}

#[test]
fn each_mistake_names_its_sample() {
    let scene = Scene::new();
    let image = scene.bytes_of("x");
    let image = image.as_slice();
    let cases: [(Members<'_>, &str); 12] = [
        (
            &[("0.png", image)],
            ", 0: an image without a class; add a .cls member, or set dataset.unlabelled=true to train on it without a label",
        ),
        (&[("0.png", image), ("0.cls", b"0"), ("1.cls", b"0")], ", 1: a class without an image; create the"),
        (
            &[("0.png", image), ("0.cls", b"0"), ("1.png", image), ("1.cls", b"1"), ("0.txt", b"")],
            ", 0: its members are not adjacent, or its key is not unique; create the shard again",
        ),
        (&[("0.png", image), ("0.png", image)], ", 0: it has two .png members; create the shard again"),
        (&[("0.png", image), ("0.jpg", image)], ", 0: it has two images; create the shard again"),
        (
            &[("0.png", image), ("0.cls", b"0"), ("0.json", br#"{"label": 1}"#)],
            ", 0: it has two different classes",
        ),
        (
            &[("0.png", image), ("0.cls", b"-1")],
            ", 0.cls: its class is not a non-negative integer; create the",
        ),
        (
            &[("0.png", image), ("0.json", br#"{"label": 1.5}"#)],
            ", 0.json: its class 1.5 is not a non-negative",
        ),
        (
            &[("0.png", image), ("0.json", b"{")],
            ", 0.json: invalid JSON: EOF while parsing an object at line 1",
        ),
        (&[("0.png", image), ("0.cls", b"99999999")], ", 0: the label 99999999, expected less than 1048576"),
        (
            &[("../0.png", image), ("../0.cls", b"0")],
            ", byte 0: the name \"../0.png\" leads out of the folder; create it again with regular files only",
        ),
        (
            &[("0.txt", b"x")],
            ": none of the images in its shards could be read; names of images must end in .jpg, .jpeg, .png or .webp",
        ),
    ];
    for (members, expected) in cases {
        scene.file("train.tar", &tar(members));
        let place = if expected.starts_with(':') { "" } else { "train.tar" };
        scene.refuses(prepare(&scene), &format!("{place}{expected}"));
    }
    let whole = tar(&[("0.png", image), ("0.cls", b"0")]);
    scene.file("train.tar", &whole[..whole.len() - 1_024]);
    let sentence = scene.refusal(prepare(&scene));
    assert!(sentence.starts_with("train.tar, byte "), "{sentence}");
    assert!(sentence.ends_with(": the archive is cut short; download it again"), "{sentence}");
    scene.file("train.tar.gz", b"\x1f\x8b");
    scene.refuses(prepare(&scene), "train.tar.gz: a compressed shard does not allow random access");
}

/// An image that cannot be read, and one that can.
fn with_gif(image: &[u8]) -> [(&'static str, &[u8]); 4] {
    [("0.jpg", b"GIF89a"), ("0.cls", b"0"), ("1.jpg", image), ("1.cls", b"1")]
}

#[test]
fn an_image_that_cannot_be_read_is_noted_with_its_key() {
    let scene = Scene::new();
    let image = scene.bytes_of("x");
    scene.file("train.tar", &tar(&with_gif(&image)));
    let prepared = prepare(&scene).unwrap();
    assert_eq!(prepared.header.samples, 1);
    let note = scene.sentence(&prepared.unreadable[0]);
    assert!(note.starts_with("train.tar, 0: this is a GIF; calmix reads JPEG, PNG and WebP"), "{note}");
}

/// One wrong label must not become a million classes, each of which costs memory for every sample.
#[test]
fn a_label_far_beyond_the_others_is_refused_with_its_place() {
    let golden = Golden::load();
    let image = golden.images.iter().find(|case| case.name.starts_with("png")).unwrap();
    let image = golden.bytes(image.file);
    let prepared = |label: &[u8]| {
        let scene = Scene::new();
        let members: Members<'_> = &[
            ("a.png", image),
            ("a.cls", b"0"),
            ("b.png", image),
            ("b.cls", label),
            ("c.png", image),
            ("c.cls", b"1"),
        ];
        scene.file("0.tar", &tar(members));
        prepare(&scene).map(|prepared| prepared.header.classes.len())
    };
    let error = prepared(b"1048575").unwrap_err().to_string();
    assert!(error.contains("0.tar, b: the label is 1048575, but only 3 different labels occur"), "{error}");
    assert!(prepared(b"1000").is_err());
    assert_eq!(prepared(b"999").unwrap(), 1_000, "a part of ImageNet under its original numbers");
}

/// A scene of ten shards with labels of three classes.
fn ten_shards() -> Scene {
    let scene = Scene::new();
    for shard in 0..10 {
        let mut names = Vec::new();
        for sample in 0..=shard {
            let image = scene.bytes_of(&format!("{shard} {sample}"));
            names.push((format!("{sample}.png"), image));
            names.push((format!("{sample}.cls"), ((shard + sample) % 3).to_string().into_bytes()));
        }
        let members: Vec<_> = names.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        scene.file(&format!("train-{shard}.tar"), &tar(&members));
    }
    scene
}

/// All files of the prepared table.
fn table(scene: &Scene) -> Vec<(String, Vec<u8>)> {
    let names = ["manifest.json", "samples.bin", "parts.bin", "names.bin"];
    let files = names.map(|name| (name.to_owned(), fs::read(scene.target().join(name)).unwrap())).to_vec();
    fs::remove_dir_all(scene.target()).unwrap();
    files
}

fn prepare_with(scene: &Scene, threads: usize, scans: Option<PathBuf>) -> Result<Prepared, DataError> {
    let inspection = Inspection { threads, scans, ..Inspection::default() };
    let options = WebdatasetOptions { inspection, ..WebdatasetOptions::default() };
    webdataset::prepare(&scene.root(), &scene.target(), &options)
}

#[test]
fn table_does_not_depend_on_threads() {
    let scene = ten_shards();
    prepare_with(&scene, 1, None).unwrap();
    let alone = table(&scene);
    for threads in [2, 3, 16] {
        prepare_with(&scene, threads, None).unwrap();
        assert!(table(&scene) == alone, "{threads} threads");
    }
    // The error is that of the first shard that has one.
    scene.file("train-3.tar", b"broken").file("train-8.tar", b"broken");
    for threads in [1, 4] {
        scene.refuses(prepare_with(&scene, threads, None), "train-3.tar");
    }
}

#[test]
fn shards_that_were_read_are_not_read_again() {
    let scene = ten_shards();
    prepare(&scene).unwrap();
    let wanted = table(&scene);
    let scans = scene.outside().join("scans");
    let last = fs::read(scene.root().join("train-9.tar")).unwrap();
    scene.file("train-9.tar", b"broken");
    prepare_with(&scene, 1, Some(scans.clone())).unwrap_err();
    assert_eq!(fs::read_dir(&scans).unwrap().count(), 9);
    scene.file("train-9.tar", &last);
    // Other bytes of the same length and time are not noticed: the shard is not read.
    let path = scene.root().join("train-2.tar");
    let changed = fs::metadata(&path).unwrap().modified().unwrap();
    let mut other = fs::read(&path).unwrap();
    let whole = other.clone();
    // In the text of its first image.
    other[578] ^= 1;
    fs::write(&path, &other).unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(changed).unwrap();
    prepare_with(&scene, 2, Some(scans.clone())).unwrap();
    assert!(table(&scene) == wanted);
    // Another time is.
    File::options().write(true).open(&path).unwrap().set_modified(SystemTime::now()).unwrap();
    prepare_with(&scene, 2, Some(scans.clone())).unwrap();
    assert!(table(&scene) != wanted);
    fs::write(&path, &whole).unwrap();
    // So are scans that are damaged or of other options.
    for entry in fs::read_dir(&scans).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let end = bytes.len() - 7;
        bytes[end] ^= 1;
        fs::write(path, bytes).unwrap();
    }
    prepare_with(&scene, 2, Some(scans.clone())).unwrap();
    assert!(table(&scene) == wanted);
    let inspection = Inspection { scans: Some(scans), ..Inspection::default() };
    let classes = Some(vec!["a".to_owned(), "b".to_owned()]);
    let options = WebdatasetOptions { inspection, classes, ..WebdatasetOptions::default() };
    webdataset::prepare(&scene.root(), &scene.target(), &options).unwrap_err();
}

#[test]
fn unreadable_images_are_noted_again_after_a_kill() {
    let scene = Scene::new();
    let image = scene.bytes_of("x");
    let members = with_gif(&image);
    scene.file("train-0.tar", &tar(&members)).file("train-1.tar", &tar(&members[2..]));
    let scans = scene.outside().join("scans");
    for _ in 0..2 {
        let prepared = prepare_with(&scene, 2, Some(scans.clone())).unwrap();
        assert_eq!((prepared.header.samples, prepared.unreadable.len()), (2, 1));
        table(&scene);
    }
}

#[test]
fn files_of_a_stream_are_found_by_search() {
    let scene = Scene::new();
    let image = scene.bytes_of("x");
    let sizes = [1_usize, 5, 2, 9, 1, 1, 17];
    for (shard, &size) in sizes.iter().enumerate() {
        let names: Vec<String> = (0..size).map(|n| format!("{n}.png")).collect();
        let labels: Vec<String> = (0..size).map(|n| format!("{n}.cls")).collect();
        let members = names.iter().zip(&labels);
        let members: Vec<(&str, &[u8])> = members
            .flat_map(|(name, label)| [(name.as_str(), image.as_slice()), (label.as_str(), b"0")])
            .collect();
        scene.file(&format!("train-{shard}.tar"), &tar(&members));
    }
    prepare(&scene).unwrap();
    let dataset = Dataset::open(&scene.target(), &scene.root()).unwrap();
    let files = NonZeroU64::new(3).unwrap();
    let lengths = |ids: SampleIds| FileBlocks::find(&dataset, &ids, files).unwrap().lengths.to_vec();
    assert_eq!(lengths(SampleIds::from(0..36)), [1, 5, 2, 9, 1, 1, 17]);
    assert_eq!(lengths(SampleIds::from(4..20)), [2, 2, 9, 1, 1, 1]);
    // Without some samples, and without a whole file.
    let holes = UnlabelledSet::new(std::iter::once(0..36), [1, 6, 7, 8, 35]);
    assert_eq!(lengths(SampleIds::from(holes)), [1, 4, 8, 1, 1, 16]);
    assert!(lengths(SampleIds::default()).is_empty());
}
