#![no_main]

use calmix_data::source::idx::{self, Classes};
use calmix_fuzz::{Scene, with_scene};
use libfuzzer_sys::fuzz_target;

const FILES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
];

// The first byte selects which file the others are: images or labels, plain or under gzip.
fuzz_target!(|bytes: &[u8]| {
    let Some((&which, bytes)) = bytes.split_first() else { return };
    with_scene!(whole, |scene| {
        let which = usize::from(which % 4);
        whole(scene);
        if which >= 2 {
            // A plain file is preferred to a packed one.
            let _ = std::fs::remove_file(scene.root().join(FILES[which - 2]));
        }
        let path = scene.put(FILES[which], bytes);
        scene.check(idx::prepare(&scene.root(), &scene.target(), Classes::Digits));
        let _ = std::fs::remove_file(path);
    });
});

fn whole(scene: &Scene) {
    for stem in ["train", "t10k"] {
        scene.put(
            &format!("{stem}-images-idx3-ubyte"),
            &[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1, 1, 2, 3, 4],
        );
        scene.put(&format!("{stem}-labels-idx1-ubyte"), &[0, 0, 8, 1, 0, 0, 0, 2, 7, 9]);
    }
}
