//! Image files that are much longer than their images: in little memory, and by the bytes of the image alone.
#![cfg(target_os = "linux")]

use std::fs::File;

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::manifest::Prepared;
use calmix_data::source::Inspection;
use calmix_data::source::folder::{self, FolderOptions};
use calmix_testkit::memory;
use calmix_testkit::photos::Golden;

use crate::scene::Scene;

const MIB: u64 = 1 << 20;

fn prepare(scene: &Scene) -> Result<Prepared, DataError> {
    let inspection = Inspection { threads: 4, ..Inspection::default() };
    folder::prepare(&scene.root(), &scene.target(), &FolderOptions { inspection, ..FolderOptions::default() })
}

/// One test in this process: the peak is the process's own.
#[test]
fn files_longer_than_their_images() {
    let golden = Golden::load();
    let kinds = ["png-rgb", "jpeg-444-64x48-q50-progressive", "webp-lossless", "webp-lossy-75"];
    let plain = Scene::new();
    let long = Scene::new();
    for (n, kind) in kinds.iter().cycle().take(32).enumerate() {
        let image = golden.image(kind);
        plain.file(&format!("a/{n}"), image);
        // Not holes, and no chunk of any format.
        long.file(&format!("a/{n}"), &[image, &vec![0xab; 12 << 20]].concat());
    }
    let expected = prepare(&plain).unwrap().header;
    let before = memory::peak().unwrap();
    let prepared = prepare(&long).unwrap();
    let taken = memory::peak().unwrap() - before;
    // Four threads hold a file each; all 32 at once would be 384 MiB.
    assert!(taken < 96 * MIB, "{} MiB", taken / MIB);
    assert!(prepared.unreadable.is_empty(), "{:?}", prepared.unreadable);
    assert_eq!(prepared.header.fingerprint, expected.fingerprint, "the same images are the same dataset");

    let dataset = Dataset::open(&long.target(), &long.root()).unwrap();
    for id in 0..dataset.len() {
        let file = dataset.sample_name(id).unwrap();
        let number: usize = file.strip_prefix("a/").unwrap().parse().unwrap();
        let image = golden.image(kinds[number % kinds.len()]);
        assert_eq!(dataset.record(id).unwrap().length as usize, image.len(), "{file}");
        dataset.image(id).unwrap();
    }
    dataset.verify().unwrap();

    // A file of holes behind an image costs its maker nothing.
    let hollow = Scene::new();
    hollow.file("a/1.png", golden.image("png-rgb")).file("a/2.png", golden.image("png-rgb"));
    let file = File::options().write(true).open(hollow.root().join("a/2.png")).unwrap();
    file.set_len(20 * MIB).unwrap();
    let prepared = prepare(&hollow).unwrap();
    assert_eq!(prepared.header.samples, 1);
    assert!(
        prepared.unreadable[0].to_string().contains("nearly all of them holes"),
        "{:?}",
        prepared.unreadable
    );
}
