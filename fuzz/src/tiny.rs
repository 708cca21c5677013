//! A prepared dataset of a few bytes.

use std::fs;

use calmix_data::manifest::{Encoding, ManifestBuilder, PixelLayout};
use serde_json::Value;

use crate::Scene;

/// The files of a prepared dataset.
pub const FILES: [&str; 4] = ["manifest.json", "samples.bin", "parts.bin", "names.bin"];

/// Writes the hashes of the tables as they are now into the header, so that the checks behind the hashes are reached.
pub fn rehash(scene: &Scene) {
    let read = |name: &str| fs::read(scene.target().join(name)).expect("a file");
    let mut header: Value = serde_json::from_slice(&read(FILES[0])).expect("a header");
    for table in ["samples", "parts", "names"] {
        header["tables"][table] = blake3::hash(&read(&format!("{table}.bin"))).to_hex().as_str().into();
    }
    fs::write(scene.target().join(FILES[0]), header.to_string()).expect("a file");
}

/// Prepares eight grey pixels in two subsets.
pub fn prepare(scene: &Scene) {
    let pixels: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
    let encoding = Encoding::Raw { width: 1, height: 1, layout: PixelLayout::Grey };
    let mut builder =
        ManifestBuilder::new(&scene.target(), vec!["even".into(), "odd".into()], encoding).expect("a folder");
    for subset in ["train", "extra"] {
        scene.put(subset, &pixels);
        builder.subset(subset);
        let part = builder.part(subset, 8).expect("a part");
        for pixel in pixels {
            let label = (subset == "train").then_some(u32::from(pixel % 2));
            builder.sample(part, pixel.into(), &[pixel], label).expect("a sample");
        }
    }
    builder.finish().expect("a prepared dataset");
}
