//! What pretrained weights say, between the recipes of ours and what the user sets.

use std::fs;

use calmix_lifecycle::start::with_pretrained;
use calmix_recipe::Layers;
use calmix_recipe::network::BottleneckStride;
use calmix_run::pretrained::weights_folder::WeightsFolder;
use safetensors::tensor::{Dtype, TensorView};

const INSIDE: &str = r#"{"architecture": "tf_efficientnet_lite0", "pretrained_cfg": {"input_size": [3, 96, 96],
    "mean": [0.1, 0.1, 0.1], "std": [0.1, 0.1, 0.1]}}"#;

#[test]
fn precedence_is_user_config_metadata_recipe() {
    let folder = tempfile::tempdir().unwrap();
    let weights = WeightsFolder::new(folder.path());
    let place = folder.path().join("some");
    fs::create_dir(&place).unwrap();
    let view = TensorView::new(Dtype::F32, vec![1], &[0; 4]).unwrap();
    let file = safetensors::serialize([("fc.bias", view)], Some([("config".into(), INSIDE.into())].into()));
    fs::write(place.join("model.safetensors"), file.unwrap()).unwrap();
    let resolve = |settings: &[&str]| {
        let layers = Layers::new().recipe("cifar10").set("network.weights=some");
        let layers = settings.iter().fold(layers, |layers, setting| layers.set(setting));
        with_pretrained(layers, &weights).unwrap().resolve().unwrap()
    };
    // Metadata over the recipe.
    let inside = resolve(&[]);
    assert_eq!((inside.recipe.augment.size, inside.recipe.dataset.mean), (96, [0.1; 3]));
    assert_eq!(inside.recipe.network.name.to_string(), "tf_efficientnet_lite0");
    let model = place.join("model.safetensors").display().to_string();
    assert_eq!(inside.origin("augment.size").to_string(), model);
    assert_eq!(inside.recipe.network.weights_hash.len(), 64);
    assert_eq!(inside.recipe.train.batch, 64, "the rest is the recipe's");

    // `config.json` over metadata, where it says something; the user over both.
    let beside = r#"{"architecture": "resnet50", "model_args": {"stride": "1x1"}, "pretrained_cfg": {
        "input_size": [3, 160, 160], "mean": [0.2, 0.2, 0.2]}}"#;
    fs::write(place.join("config.json"), beside).unwrap();
    let both = resolve(&["augment.size=128"]);
    let recipe = &both.recipe;
    assert_eq!((recipe.augment.size, recipe.dataset.mean, recipe.dataset.std), (128, [0.2; 3], [0.1; 3]));
    assert_eq!(recipe.network.stride, BottleneckStride::First);
    assert_eq!(both.origin("augment.size").to_string(), "--set 2");
    assert_eq!(both.origin("dataset.mean").to_string(), place.join("config.json").display().to_string());
    assert_eq!(both.origin("dataset.std").to_string(), model);

    // What is stored is enough to repeat it: read again without the weights it is the same recipe.
    fs::remove_dir_all(&place).unwrap();
    let again = Layers::new().text("recipe.toml".as_ref(), &both.to_toml()).resolve().unwrap();
    assert_eq!((again.hash(), again.to_toml()), (both.hash(), both.to_toml()));
    let error = with_pretrained(Layers::new().set("network.weights=some"), &weights).unwrap_err().to_string();
    assert!(error.contains("no weights are named some: the folder is empty"), "{error}");
    assert!(
        with_pretrained(Layers::new().recipe("cifar10"), &weights).is_ok(),
        "without weights none are looked for"
    );
}
