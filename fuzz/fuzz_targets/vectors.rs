#![no_main]

use std::fs;
use std::sync::Once;

use calmix_data::source::vectors;
use calmix_formats::vectors::VectorOptions;
use calmix_fuzz::with_scene;
use libfuzzer_sys::fuzz_target;

/// The first byte chooses the name.
const NAMES: [&str; 5] = ["v.npy", "v.npz", "v.parquet", "v.safetensors", "v.csv"];

static QUIET: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    // The crate `parquet` panics on damaged files, which the reader makes errors. libFuzzer's hook would abort before that;
    // a panic that reaches the target still does.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let [kind, bytes @ ..] = bytes else { return };
    with_scene!(|_| {}, |scene| {
        let path = scene.put(NAMES[usize::from(*kind) % NAMES.len()], bytes);
        scene.check(vectors::prepare(&path, &scene.target(), None, &VectorOptions::default(), None));
        fs::remove_file(path).expect("a file can be removed");
    });
});
