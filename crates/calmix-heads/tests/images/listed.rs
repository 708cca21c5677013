//! A run of a head on a folder of images with a list of unlabelled samples, through everything that `calmix train` decides.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use calmix_heads::HeadsError;
use calmix_heads::trainer;
use calmix_lifecycle::LifecycleError;
use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::start::{Draft, RunPlace, StartContext, prepare_run};
use calmix_recipe::device::Device;
use calmix_run::result::Outcome;
use calmix_testkit::png_file::{Pixels, png};

use super::made::Bench;

/// Two classes of twelve images that differ.
fn photos(folder: &Path) {
    for (class, shade) in [("cat", 20), ("dog", 120)] {
        let images = folder.join(class);
        fs::create_dir_all(&images).unwrap();
        for number in 0..12_u8 {
            let pixel = |place: usize| shade + number * 7 + place as u8 % (number + 2);
            let image = png(Pixels::Grey, [8, 8], pixel);
            fs::write(images.join(format!("{number:02}.png")), image).unwrap();
        }
    }
}

#[test]
fn begun_run_with_another_list_is_refused() {
    let bench = Bench::new();
    let data = bench.folder("photos");
    photos(&data);
    let list = bench.folder("list.csv");
    let path = format!("dataset.path={}", data.display());
    let unlabelled = format!("labels.unlabelled_file={}", list.display());
    // `calmix train` would put it into the working folder.
    let cache = format!("network.cache={}", bench.folder("features").display());
    let settings =
        ["dataset.source=folder", &path, &unlabelled, &cache, "labels.keep=per-class", "dataset.test="];
    // An empty file is a recipe of the user's.
    let layers = bench.layers(&settings).text(Path::new("mine.toml"), "");
    let stop = AtomicBool::new(false);
    let start = || {
        let draft = Draft::new(layers.clone(), || Device::Cpu)?;
        let place = RunPlace::NewOrBegun(bench.folder("run"));
        let prepared = prepare_run(&draft, &place, StartContext::quiet(&stop))?;
        trainer::start(RunRequest::new(&stop), prepared)
    };
    let write = |rows: &[&str]| fs::write(&list, format!("path\n{}\n", rows.join("\n"))).unwrap();
    write(&["cat/07.png", "cat/08.png", "dog/09.png", "dog/10.png"]);
    assert!(matches!(start().unwrap(), Outcome::Finished(_)));
    assert!(matches!(start().unwrap(), Outcome::AlreadyFinished(_)));
    write(&["cat/07.png", "cat/08.png", "dog/09.png", "dog/11.png"]);
    let error = start().unwrap_err();
    assert!(matches!(error, HeadsError::Lifecycle(LifecycleError::OtherList { .. })), "{error}");
    assert!(error.to_string().starts_with(&list.display().to_string()), "{error}");
}
