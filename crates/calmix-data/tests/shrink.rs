//! Large images are shrunk once: the same pixels for every reader, the same table for any number of threads.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use calmix_data::dataset::Dataset;
use calmix_data::manifest::Prepared;
use calmix_data::manifest::{SHRUNK_FILE, ShrunkImages};
use calmix_data::prepare_progress::PrepareProgress;
use calmix_data::shrink::shrunk;
use calmix_data::source::Inspection;
use calmix_data::source::folder::{self, FolderOptions};
use calmix_formats::decode::{DecodeLimits, decode};
use calmix_testkit::png_file::{Pixels, png};

use crate::scene::Scene;

const SIDE: u32 = 32;

/// A PNG whose every pixel differs from its neighbours.
fn image(width: u32, height: u32, seed: u32) -> Vec<u8> {
    png(Pixels::Rgb, [width, height], |place| ((place as u32).wrapping_mul(seed * 2 + 37) >> 3) as u8)
}

/// Ten large and two small images.
fn photos() -> Scene {
    let scene = Scene::new();
    for n in 0..10 {
        scene.file(&format!("cat/{n}.png"), &image(90 + n, 60, n));
    }
    scene.file("dog/small.png", &image(40, SIDE, 1)).file("dog/tall.png", &image(20, 300, 2));
    scene
}

fn prepare(scene: &Scene, target: &Path, shrink: u32, threads: usize) -> Prepared {
    let progress = Arc::new(PrepareProgress::default());
    let inspection =
        Inspection { shrink, threads, progress: Some(Arc::clone(&progress)), ..Inspection::default() };
    let options = FolderOptions { inspection, ..FolderOptions::default() };
    let prepared = folder::prepare(&scene.root(), target, &options).unwrap();
    assert_eq!(progress.now(), (12, 12));
    prepared
}

#[test]
fn shrunk_images_keep_their_file_names() {
    let scene = photos();
    let prepared = prepare(&scene, &scene.target(), SIDE, 0);
    assert_eq!(prepared.header.shrunk, Some(ShrunkImages { side: SIDE, count: 10 }));
    let dataset = Dataset::open(&scene.target(), &scene.root()).unwrap();
    dataset.verify().unwrap();
    for id in 0..dataset.len() {
        let name = dataset.sample_name(id).unwrap();
        let file = fs::read(scene.root().join(&name)).unwrap();
        let whole = decode(&file, &DecodeLimits::default()).unwrap();
        let image = dataset.image(id).unwrap();
        assert_eq!(image.width().min(image.height()), whole.width().min(whole.height()).min(SIDE), "{name}");
        assert!(image == shrunk(whole, SIDE), "{name}");
    }

    // Without the rule the same files are another dataset, and none of it has a place of its own.
    let full = prepare(&scene, &scene.root().with_extension("full"), 0, 0);
    assert_eq!(full.header.shrunk, None);
    assert_ne!(full.header.fingerprint, prepared.header.fingerprint);
    // Under a rule that no image breaks, they are that dataset too.
    let loose = prepare(&scene, &scene.root().with_extension("loose"), 4_000, 0);
    assert_eq!(loose.header, full.header);
}

#[test]
fn the_bytes_of_a_table_do_not_depend_on_the_threads() {
    let scene = photos();
    let folders = [1, 2, 7].map(|threads| {
        let target = scene.root().with_extension(threads.to_string());
        prepare(&scene, &target, SIDE, threads);
        target
    });
    let files = |folder: &Path| {
        let names = ["manifest.json", "samples.bin", "parts.bin", "names.bin", SHRUNK_FILE];
        names.map(|name| fs::read(folder.join(name)).unwrap())
    };
    let first = files(&folders[0]);
    assert!(first[4].len() > 10 * 3 * (SIDE * SIDE) as usize);
    assert!(folders.iter().all(|folder| files(folder) == first));
}

#[test]
fn shrunk_image_damage_is_noticed() {
    let scene = photos();
    prepare(&scene, &scene.target(), SIDE, 0);
    let open = || Dataset::open(&scene.target(), &scene.root()).unwrap();
    // Another file of the same name and length.
    let path = scene.root().join("cat/3.png");
    let file = fs::read(&path).unwrap();
    let mut other = file.clone();
    *other.last_mut().unwrap() ^= 1;
    fs::write(&path, other).unwrap();
    let error = open().verify().unwrap_err().to_string();
    assert!(
        error.contains("cat/3.png") && error.contains("the file has changed since its image was shrunk"),
        "{error}"
    );
    fs::write(&path, file).unwrap();
    open().verify().unwrap();

    let stored = scene.target().join(SHRUNK_FILE);
    let bytes = fs::read(&stored).unwrap();
    let mut changed = bytes.clone();
    changed[1_000] ^= 1;
    fs::write(&stored, changed).unwrap();
    let error = open().image(0).unwrap_err().to_string();
    assert!(error.contains(SHRUNK_FILE) && error.contains("checksum"), "{error}");
    fs::write(&stored, &bytes[..bytes.len() / 2]).unwrap();
    assert!(open().image(9).unwrap_err().to_string().contains(SHRUNK_FILE));
    fs::remove_file(&stored).unwrap();
    assert!(open().image(9).unwrap_err().to_string().contains(SHRUNK_FILE));
}

/// Formats of phones and cameras, recognised by bytes or name: left out, with a hint how to convert them.
#[test]
fn unsupported_photos_are_left_out_with_a_hint() {
    let scene = photos();
    scene.file("cat/phone.heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic");
    scene.file("cat/camera.cr3", b"\0\0\0\x18ftypcrx \0\0\0\x01crx isom");
    scene.file("cat/camera.nef", b"MM\0*\0\0\0\x08");
    scene.file("cat/camera.raf", b"FUJIFILMCCD-RAW 0201");
    scene.file("cat/unknown.arw", b"what no camera writes");
    let options = FolderOptions::default();
    let prepared = folder::prepare(&scene.root(), &scene.target(), &options).unwrap();
    let said: Vec<_> = prepared.unreadable.iter().map(ToString::to_string).collect();
    assert_eq!((prepared.header.samples, said.len()), (12, 5), "{said:#?}");
    for (name, what, way) in [
        ("phone.heic", "a HEIC", "heif-convert"),
        ("camera.cr3", "a camera's raw file", "darktable-cli"),
        ("camera.nef", "a TIFF or a camera's raw file", "darktable-cli"),
        ("camera.raf", "a camera's raw file", "darktable-cli"),
        ("unknown.arw", "not an image format", "convert it"),
    ] {
        let is_said = |line: &String| line.contains(name) && line.contains(what) && line.contains(way);
        assert!(said.iter().any(is_said), "{name}: {said:#?}");
    }
}
