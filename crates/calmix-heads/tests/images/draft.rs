//! Which recipe a folder gets, and whether it trains a head.

use std::cell::Cell;
use std::fs;

use calmix_lifecycle::LifecycleError;
use calmix_lifecycle::start::{Draft, StartError, trains_head};
use calmix_recipe::Layers;
use calmix_recipe::device::Device;

#[test]
fn device_is_asked_for_only_if_it_decides() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("cat")).unwrap();
    let data = format!("dataset.path={}", folder.path().display());
    let asked = Cell::new(false);
    let device = || {
        asked.set(true);
        Device::Cuda(0)
    };
    for (recipe, is_head) in [("head-folder", true), ("cpu-folder", false), ("vectors", true)] {
        let layers = Layers::new().recipe(recipe).set(&data);
        assert_eq!(trains_head(&layers, device).unwrap(), is_head, "{recipe}");
    }
    let layers = Layers::new().recipe("cpu-folder").set("network.train=head");
    assert!(trains_head(&layers, device).unwrap());
    let named = Layers::new().set(&data).set("train.device=cuda");
    assert!(!trains_head(&named, device).unwrap());
    assert!(!asked.get());
    let layers = Layers::new().set(&data);
    assert!(!trains_head(&layers, device).unwrap());
    assert!(asked.replace(false));
    assert_eq!(Draft::new(layers, device).unwrap().chosen_recipe, Some("folder"));
    assert!(asked.get());
    let error = trains_head(&Layers::new(), device).unwrap_err();
    assert!(matches!(error, LifecycleError::Start(StartError::Nothing)), "{error}");
}
