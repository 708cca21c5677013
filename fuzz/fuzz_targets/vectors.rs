#![no_main]

use std::fs;

use calmix_data::source::vectors;
use calmix_formats::vectors::VectorOptions;
use calmix_fuzz::{allow_caught_panics, with_scene};
use libfuzzer_sys::fuzz_target;

/// The first byte chooses the name.
const NAMES: [&str; 5] = ["v.npy", "v.npz", "v.parquet", "v.safetensors", "v.csv"];

fuzz_target!(|bytes: &[u8]| {
    allow_caught_panics();
    let [kind, bytes @ ..] = bytes else { return };
    with_scene!(|_| {}, |scene| {
        let path = scene.put(NAMES[usize::from(*kind) % NAMES.len()], bytes);
        scene.check(vectors::prepare(
            std::slice::from_ref(&path),
            &scene.target(),
            None,
            &VectorOptions::default(),
            None,
        ));
        fs::remove_file(path).expect("a file can be removed");
    });
});
