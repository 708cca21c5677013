#![no_main]

use calmix_data::dataset::Dataset;
use calmix_data::split::LabelSplit;
use calmix_fuzz::{tiny, with_scene};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    with_scene!(tiny::prepare, |scene| {
        let dataset = Dataset::open(&scene.target(), &scene.root()).expect("a prepared dataset");
        let path = scene.put("split.json", bytes);
        match LabelSplit::read(&path, &dataset) {
            Ok(split) => {
                let counts = split.counts(&dataset).expect("counts of a sound split");
                let unlabelled = split.unlabelled(&dataset).expect("the unlabelled set of a sound split");
                assert_eq!(counts.unlabelled, unlabelled.len());
                for position in 0..unlabelled.len() {
                    let id = unlabelled.id(position).expect("an id");
                    assert_eq!(unlabelled.position(id), Some(position));
                }
            }
            Err(error) => assert!(error.path() == Some(path.as_path()) && !error.to_string().is_empty()),
        }
    });
});
