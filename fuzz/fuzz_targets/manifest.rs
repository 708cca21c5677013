#![no_main]

use std::cell::OnceCell;
use std::fs;

use calmix_data::dataset::Dataset;
use calmix_fuzz::tiny::{self, FILES};
use calmix_fuzz::with_scene;
use libfuzzer_sys::fuzz_target;

std::thread_local! {
    static WHOLE: OnceCell<Vec<Vec<u8>>> = const { OnceCell::new() };
}

// The first byte selects which file of a prepared dataset the others are.
fuzz_target!(|bytes: &[u8]| {
    let Some((&which, bytes)) = bytes.split_first() else { return };
    let which = usize::from(which) % FILES.len();
    with_scene!(tiny::prepare, |scene| WHOLE.with(|whole| {
        let path = |name: &str| scene.target().join(name);
        let read = || FILES.iter().map(|name| fs::read(path(name)).expect("a file")).collect();
        let whole: &Vec<Vec<u8>> = whole.get_or_init(read);
        fs::write(path(FILES[which]), bytes).expect("a file");
        if which > 0 {
            tiny::rehash(scene);
        }
        if let Ok(dataset) = Dataset::open(&scene.target(), &scene.root()) {
            for id in (0..8).chain([u64::MAX / 24, u64::MAX]) {
                let _ = dataset.image(id);
            }
            let _ = dataset.part(0);
            let _ = dataset.verify();
        }
        for restored in [0, which] {
            fs::write(path(FILES[restored]), &whole[restored]).expect("a file");
        }
    }));
});
