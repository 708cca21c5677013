#![no_main]

use calmix_data::source::cifar::{self, Variant};
use calmix_formats::source_dir::Count;
use calmix_fuzz::{Scene, with_scene};
use libfuzzer_sys::fuzz_target;

// The first byte selects which file the others are: the images, or the names of the classes.
fuzz_target!(|bytes: &[u8]| {
    let Some((&which, bytes)) = bytes.split_first() else { return };
    with_scene!(whole, |scene| {
        whole(scene);
        scene.put(if which % 2 == 0 { "train.bin" } else { "fine_label_names.txt" }, bytes);
        scene.check(cifar::prepare(&scene.root(), &scene.target(), Variant::Cifar100Fine, Count::Any));
        let _ = std::fs::remove_file(scene.root().join("fine_label_names.txt"));
    });
});

fn whole(scene: &Scene) {
    scene.put("train.bin", &[1; 3_074]);
    scene.put("test.bin", &[2; 3_074]);
}
