//! Folders of images.

use std::path::Path;

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::manifest::Prepared;
use calmix_data::prepare::Findings;
use calmix_data::source::folder::{self, FolderOptions};
use calmix_data::source::{Check, FolderLayout, Inspection, SourceSpec};
use calmix_testkit::{photos, tier};

use crate::scene::{Scene, subsets};

fn prepare(scene: &Scene) -> Result<Prepared, DataError> {
    folder::prepare(&scene.root(), &scene.target(), &FolderOptions::default())
}

/// Prepares the folder as `options` say, and removes what was prepared.
fn prepare_with(scene: &Scene, options: &FolderOptions) -> Prepared {
    let prepared = folder::prepare(&scene.root(), &scene.target(), options).unwrap();
    std::fs::remove_dir_all(scene.target()).unwrap();
    prepared
}

#[test]
fn folder_per_class_is_read_in_byte_order() {
    let scene = Scene::new();
    scene.image("dog/b.png").image("dog/a.png").image("dog/deep/er/c.png").image("Cat/1.png");
    scene.image("äffchen/1.png").image("unlabeled/z.png").image("unlabeled/more/y.png");
    scene.file("dog/.DS_Store", b"x").file("dog/Thumbs.db", b"x").file("dog/notes.txt", b"two dogs");
    scene.image(".hidden/a.png").image("__MACOSX/dog/a.png");
    let prepared = prepare(&scene).unwrap();
    assert_eq!(prepared.header.classes, ["Cat", "dog", "äffchen"]);
    assert_eq!(subsets(&prepared), ["train 0 5", "unlabelled 5 2"]);
    assert!(prepared.unreadable.is_empty());
    let expected = [
        ("Cat/1.png", Some(0)),
        ("dog/a.png", Some(1)),
        ("dog/b.png", Some(1)),
        ("dog/deep/er/c.png", Some(1)),
        ("äffchen/1.png", Some(2)),
        ("unlabeled/z.png", None),
        ("unlabeled/more/y.png", None),
    ];
    assert_eq!(scene.samples(), expected.map(|(name, label)| (name.to_owned(), label)));
}

#[test]
fn summary_lists_a_thousand_unreadable_files() {
    let scene = Scene::new();
    scene.image("a/1.png").image("b/1.png");
    for n in 0..1_200 {
        scene.file(&format!("a/{n:04}.gif"), b"GIF89a");
    }
    let source = SourceSpec::Folder { layout: FolderLayout::Auto, shrink: 0, groups: 0 };
    let report = calmix_data::prepare::prepare(&source, &scene.root(), &scene.target()).unwrap();
    let text = report.to_string();
    assert!(text.contains("1200 files or folders were left out:"), "{text}");
    assert!(text.contains("… and 1180 more"), "{text}");
    let bytes = std::fs::read(scene.target().join("report.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(json["unreadable"].as_array().unwrap().len(), 1_000);
    assert_eq!(json["left_out"], 1_200);
    let found = serde_json::to_value(Findings::read(&scene.target()).unwrap().left_out()).unwrap();
    assert_eq!(found, 1_200);
}

#[test]
fn splits_share_their_classes() {
    let scene = Scene::new();
    scene.image("validation/b/1.png").image("train/b/1.png").image("train/a/1.png").image("test/c/1.png");
    scene.image("train/unlabelled/1.png").image("unlabeled/2.png");
    let prepared = prepare(&scene).unwrap();
    assert_eq!(prepared.header.classes, ["a", "b", "c"]);
    assert_eq!(subsets(&prepared), ["train 0 2", "val 2 1", "test 3 1", "unlabelled 4 2"]);
    assert_eq!(scene.labels(), [Some(0), Some(1), Some(1), Some(2), None, None]);
}

#[test]
fn a_class_may_be_called_train() {
    let scene = Scene::new();
    scene.image("train/1.png").image("bus/1.png");
    assert_eq!(prepare(&scene).unwrap().header.classes, ["bus", "train"]);
    let scene = Scene::new();
    scene.image("train/ice/1.png").image("bus/1.png");
    assert_eq!(
        scene.refusal(prepare(&scene)).split_once(": ").unwrap().1,
        "`train` is named like a split and contains folders, but is next to bus; if `train` is a split and the folders \
         next to it should be left out, use --layout splits; if `train` is a class like the others, use --layout classes"
    );
    let read = |layout| {
        let prepared = prepare_with(&scene, &FolderOptions { layout, ..FolderOptions::default() });
        (prepared.header.classes, prepared.unreadable.len())
    };
    assert_eq!(read(FolderLayout::Splits), (vec!["ice".into()], 1));
    assert_eq!(read(FolderLayout::Classes), (vec!["bus".into(), "train".into()], 0));
}

#[test]
fn groups_with_a_single_class_are_asked_about() {
    let scene = Scene::new();
    scene.image("animals/cat/1.png").image("animals/goldfish/1.png").image("dogs/retriever/1.png");
    assert_eq!(
        scene.refusal(prepare(&scene)).split_once(": ").unwrap().1,
        "the images of animals, dogs are in inner folders: cat, goldfish, retriever; if the inner folders are the \
         classes, use --layout nested; if animals, dogs are the classes, use --layout classes; if they are, and the inner \
         folders are patients, videos or sites, use --groups 2"
    );
    let read =
        |layout| prepare_with(&scene, &FolderOptions { layout, ..FolderOptions::default() }).header.classes;
    assert_eq!(read(FolderLayout::Nested), ["cat", "goldfish", "retriever"]);
    assert_eq!(read(FolderLayout::Classes), ["animals", "dogs"]);
    // One folder in each class, or the same folders in each: where the images of the class are.
    for names in [["cat/photos", "dog/shots"], ["cat/images", "dog/images"]] {
        let scene = Scene::new();
        for name in names {
            scene.image(&format!("{name}/1.png"));
        }
        assert_eq!(prepare(&scene).unwrap().header.classes, ["cat", "dog"]);
    }
    let scene = Scene::new();
    scene.image("cat/indoor/1.png").image("cat/outdoor/1.png").image("dog/indoor/1.png");
    assert_eq!(prepare(&scene).unwrap().header.classes, ["cat", "dog"]);
}

#[test]
fn unreadable_images_are_left_out_and_listed() {
    let golden = photos::Golden::load();
    let jpeg = golden.image("jpeg-orientation-1");
    let mut flipped = golden.image("png-rgb").to_vec();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0xff;
    let scene = Scene::new();
    scene.image("a/good.png").image("stray.png").file("a/flipped.png", &flipped).file("a/empty.png", b"");
    scene.file("a/page.jpg", b"<!DOCTYPE html>").file("a/phone.bin", b"\0\0\0\x18ftypheic");
    scene.file("a/cut.jpg", &jpeg[..jpeg.len() - 9]);
    let prepared = prepare(&scene).unwrap();
    assert_eq!(prepared.header.samples, 1);
    let expected = [
        "images outside any class were left out: 1; move them into the folder of their class, or into unlabelled",
        "a/cut.jpg: the JPEG is cut short; download it again",
        "a/empty.png: this is an empty file; calmix reads JPEG, PNG and WebP; download it again",
        "a/flipped.png: the PNG is damaged: ",
        "a/page.jpg: this is a web page; calmix reads JPEG, PNG and WebP; download it again",
        "a/phone.bin: this is a HEIC; calmix reads JPEG, PNG and WebP; convert it to JPEG: \
         `heif-convert FILE out.jpg`, or all at once `magick mogrify -format jpg *.heic`",
    ];
    let notes = scene.left_out(&prepared);
    assert_eq!(notes.len(), expected.len());
    for (note, expected) in notes.iter().zip(expected) {
        assert!(note.contains(expected), "{note}");
    }
    std::fs::remove_dir_all(scene.target()).unwrap();
    let inspection = Inspection { check: Some(Check::Header), ..Inspection::default() };
    let prepared = prepare_with(&scene, &FolderOptions { inspection, ..FolderOptions::default() });
    // The header of the flipped one is fine: only decoding finds it.
    assert_eq!((prepared.header.samples, prepared.unreadable.len()), (2, 5));
}

#[test]
fn nothing_readable_is_an_error() {
    let scene = Scene::new();
    scene.file("a/1.gif", b"GIF89a");
    scene.refuses(prepare(&scene), "none of its images could be read; the first error is: ");
    let scene = Scene::new();
    scene.refuses(prepare(&scene), "put the images of each class into a folder named after the class");
    scene.image("1.png").file("labels.csv", b"file,label\n1.png,cat\n");
    scene.refuses(prepare(&scene), "--source labels-csv");
}

#[test]
fn links_out_of_the_folder_are_refused() {
    use std::os::unix::fs::symlink;
    let scene = Scene::new();
    scene.image("a/1.png");
    symlink("1.png", scene.root().join("a/2.png")).unwrap();
    assert_eq!(prepare(&scene).unwrap().header.samples, 2);
    std::fs::remove_dir_all(scene.target()).unwrap();

    std::fs::write(scene.outside().join("secret.png"), scene.bytes_of("secret")).unwrap();
    symlink("../../secret.png", scene.root().join("a/3.png")).unwrap();
    symlink(".", scene.root().join("a/loop")).unwrap();
    let prepared = prepare(&scene).unwrap();
    assert_eq!(prepared.header.samples, 2);
    let notes = scene.left_out(&prepared);
    assert!(notes[0].starts_with("a/3.png: a link that leads out of the dataset folder; replace the link"));
    assert!(notes[1].starts_with("a/loop: a link to a folder; calmix does not follow it"), "{}", notes[1]);
}

#[test]
fn tiny_imagenet_is_read_whole() {
    let Some(datasets) = std::env::var_os("CALMIX_DATASETS") else {
        return tier::skipped("CALMIX_DATASETS is not set");
    };
    let root = Path::new(&datasets).join("tiny-imagenet-10");
    let scene = Scene::new();
    let prepared = folder::prepare(&root, &scene.target(), &FolderOptions::default()).unwrap();
    assert_eq!(subsets(&prepared), ["train 0 5000", "val 5000 500"]);
    assert_eq!(prepared.header.classes.len(), 10);
    assert!(prepared.unreadable.is_empty());
    let mut counts = [0; 10];
    for record in scene.records() {
        counts[record.label as usize] += 1;
    }
    assert_eq!(counts, [550; 10]);
}

/// The groups of all samples in order, as the folder at `level` names them.
fn groups_at(scene: &Scene, level: u32, layout: FolderLayout) -> Vec<Option<u32>> {
    let options = FolderOptions { layout, groups: level, ..FolderOptions::default() };
    folder::prepare(&scene.root(), &scene.target(), &options).unwrap();
    let dataset = Dataset::open(&scene.target(), &scene.root()).unwrap();
    let groups = (0..dataset.len()).map(|id| dataset.group(id).unwrap()).collect();
    std::fs::remove_dir_all(scene.target()).unwrap();
    groups
}

#[test]
fn folder_level_names_the_group() {
    let scene = Scene::new();
    scene.image("cat/anna/1.png").image("cat/ben/1.png").image("cat/ben/deep/2.png").image("dog/carl/1.png");
    scene.image("dog/anna/1.png").image("dog/2.png").image("unlabelled/ben/1.png").image("unlabelled/1.png");
    // Files before folders: cat/anna, cat/ben, cat/ben/deep, dog/2, dog/anna, dog/carl, unlabelled/1, unlabelled/ben.
    let expected = [Some(0), Some(1), Some(1), None, Some(0), Some(2), None, Some(1)];
    assert_eq!(groups_at(&scene, 2, FolderLayout::Auto), expected);
    let with_splits = Scene::new();
    with_splits.image("train/cat/anna/1.png").image("train/dog/ben/1.png").image("test/cat/anna/1.png");
    assert_eq!(groups_at(&with_splits, 2, FolderLayout::Auto), [Some(0), Some(1), Some(0)]);
    let above = Scene::new();
    above.image("anna/cat/1.png").image("anna/dog/1.png").image("ben/cat/1.png").image("ben/dog/1.png");
    assert_eq!(groups_at(&above, 1, FolderLayout::Nested), [Some(0), Some(0), Some(1), Some(1)]);
}

#[test]
fn groups_in_classes_are_not_asked_about() {
    let scene = Scene::new();
    scene.image("cat/anna/1.png").image("cat/ben/1.png").image("dog/carl/1.png");
    scene.refusal(prepare(&scene));
    assert_eq!(groups_at(&scene, 2, FolderLayout::Auto), [Some(0), Some(1), Some(2)]);
}

#[test]
fn level_without_groups_is_refused() {
    let scene = Scene::new();
    scene.image("cat/1.png").image("dog/1.png");
    for (groups, problem) in [
        (1, "the folders at level 1 are the classes, so they cannot be the groups"),
        (2, "no image is in a folder at level 2, which names the groups"),
    ] {
        let options = FolderOptions { groups, ..FolderOptions::default() };
        scene.refuses(folder::prepare(&scene.root(), &scene.target(), &options), problem);
    }
}
