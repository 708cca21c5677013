//! ImageNet and WebVision in small.

use calmix_data::error::DataError;
use calmix_data::manifest::Prepared;
use calmix_data::source::imagenet::{self, ImagenetOptions};
use calmix_data::source::{Inspection, webvision};

use crate::scene::{Scene, subsets};

const TENCH: &str = "n01440764";
const CRANE: &str = "n02012849";

fn imagenet(scene: &Scene) -> Result<Prepared, DataError> {
    imagenet::prepare(&scene.root(), &scene.target(), &ImagenetOptions::default())
}

fn with_train(base: &str) -> Scene {
    let scene = Scene::new();
    scene.image(&format!("{base}train/{CRANE}/a.JPEG")).image(&format!("{base}train/{TENCH}/b.JPEG"));
    scene
}

#[test]
fn imagenet_in_folders() {
    let scene = with_train("");
    scene.image(&format!("val/{CRANE}/c.JPEG"));
    let prepared = imagenet(&scene).unwrap();
    assert_eq!(prepared.header.classes, [TENCH, CRANE]);
    assert_eq!(subsets(&prepared), ["train 0 2", "val 2 1"]);
    assert_eq!(scene.labels(), [Some(0), Some(1), Some(1)]);
}

#[test]
fn imagenet_with_a_flat_val() {
    let base = "ILSVRC/Data/CLS-LOC/";
    let truths = [
        ("LOC_val_solution.csv", format!("ImageId,PredictionString\nv2,{TENCH} 1 2 3 4 \nv1,{CRANE} 1 \n")),
        ("imagenet_2012_validation_synset_labels.txt", format!("{CRANE}\n{TENCH}\n")),
    ];
    for (name, truth) in truths {
        let scene = with_train(base);
        scene.image(&format!("{base}val/v1.JPEG")).image(&format!("{base}val/v2.JPEG"));
        scene.file(name, truth.as_bytes());
        let mapping = format!("{TENCH} tench\n{CRANE} crane\nn03126707 crane\n");
        scene.file("LOC_synset_mapping.txt", mapping.as_bytes());
        let prepared = imagenet(&scene).unwrap();
        assert_eq!(prepared.header.classes.len(), 3);
        let expected = [1, 0].map(|label| (format!("{base}val/v{}.JPEG", 2 - label), Some(label)));
        assert_eq!(scene.samples()[2..], expected);
    }
}

#[test]
fn imagenet_mistakes() {
    let scene = Scene::new();
    scene.refuses(imagenet(&scene), "no folder `train` in it; pass the folder that contains train and val");
    let scene = with_train("");
    scene.image("val/v1.JPEG");
    scene.refuses(imagenet(&scene), "val: the images are not in class folders, and there is no list of");
    scene.file("truth.txt", b"490\n");
    let options = ImagenetOptions { truth: Some(scene.root().join("truth.txt")), ..Default::default() };
    let refusal = || scene.refusal(imagenet::prepare(&scene.root(), &scene.target(), &options));
    assert_eq!(
        refusal(),
        "truth.txt, line 1: numbers of the development kit, which do not follow the order of the WordNet ids; use \
         LOC_val_solution.csv or imagenet_2012_validation_synset_labels.txt instead"
    );
    scene.file("truth.txt", format!("{TENCH}\n{TENCH}\n").as_bytes());
    assert_eq!(
        refusal(),
        "truth.txt: 2 lines in the list, but 1 image in val; complete val: the list assigns classes by file order"
    );
    scene.image("val/v2.JPEG").file("truth.txt", format!("{TENCH}\n\n{TENCH}\n").as_bytes());
    assert_eq!(
        refusal(),
        "truth.txt, line 3: the line before it is empty, and the list assigns classes by order; download the list again"
    );
    let scene = with_train("");
    scene.file(&format!("train/{TENCH}.tar"), b"");
    scene.refuses(imagenet(&scene), "unpack it into a folder of the same name");
    let scene = with_train("");
    scene.image("train/cats/a.JPEG");
    scene.refuses(imagenet(&scene), "train/cats: a folder that is not named like a class such as n01440764");
}

fn webvision(scene: &Scene) -> Result<Prepared, DataError> {
    webvision::prepare(&scene.root(), &scene.target(), &Inspection::default())
}

fn with_lists(google: &str) -> Scene {
    let scene = Scene::new();
    scene.file("info/synsets.txt", format!("{CRANE} crane\r\n{TENCH} tench, Tinca tinca\r\n").as_bytes());
    scene.file("info/train_filelist_google.txt", google.as_bytes());
    scene.image("google/q0001/a b.jpg").image("flickr/q0001/c.jpg");
    scene
}

#[test]
fn webvision_by_its_lists() {
    let scene = with_lists("google/q0001/a b.jpg 1\n");
    scene.file("info/train_filelist_flickr.txt", b"flickr/q0001/c.jpg 0");
    scene.file("info/val_filelist.txt", b"val000001.jpg 1\n").image("val_images_256/val000001.jpg");
    let prepared = webvision(&scene).unwrap();
    assert_eq!(prepared.header.classes, [CRANE, TENCH]);
    assert_eq!(subsets(&prepared), ["train 0 2", "val 2 1"]);
    let expected =
        [("google/q0001/a b.jpg", 1), ("flickr/q0001/c.jpg", 0), ("val_images_256/val000001.jpg", 1)];
    assert_eq!(scene.samples(), expected.map(|(name, label)| (name.to_owned(), Some(label))));
}

#[test]
fn webvision_mistakes_name_their_line() {
    let list = "info/train_filelist_google.txt";
    let cases = [
        (
            "google/q0001/a.jpg\n",
            "line 1: there is no label in \"google/q0001/a.jpg\"; each line must be a file and its class number",
        ),
        (
            "google/q0001/a b.jpg 0\ngoogle/q0001/a b.jpg 2\n",
            "line 2: the label is 2, but there are 2 classes; use the synsets.txt that came with the list",
        ),
        (
            "google/q0001/a b.jpg -1\n",
            "line 1: the label is -1, but there are 2 classes; use the synsets.txt that came with the list",
        ),
        (
            "../secret.jpg 0\n",
            "line 1: the file name \"../secret.jpg\" leads out of the folder; download the list again",
        ),
        ("google/x.jpg 0\n", "line 1: there is no file google/x.jpg; unpack all image archives"),
    ];
    for (google, expected) in cases {
        let scene = with_lists(google);
        assert_eq!(scene.refusal(webvision(&scene)), format!("{list}, {expected}"));
    }
}
