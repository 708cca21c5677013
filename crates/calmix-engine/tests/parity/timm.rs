//! Networks under timm's names against timm itself, where it is at hand: `CALMIX_TIMM` is a folder that Python finds timm
//! 1.0.30 and torchvision in.

use std::env;
use std::process::Command;

use calmix_core::rng::{Domain, Seed};
use calmix_engine::engine::{Engine, EngineSnapshot, Settings, Weights};
use calmix_engine::images::{Normalisation, Size};
use safetensors::tensor::{Dtype, TensorView};

use crate::peer::python;
use crate::run::settings;
use crate::tensors::{distance, norm, read};

#[test]
#[allow(clippy::print_stdout)] // where it is skipped
fn logits_and_features_are_timms() {
    let Some(packages) = env::var_os("CALMIX_TIMM") else {
        println!("CALMIX_TIMM names no folder with timm: nothing was compared");
        return;
    };
    calmix_engine::device::set_threads(1);
    let lite = ["tf_efficientnet_lite0", "tf_efficientnet_lite1", "tf_efficientnet_lite2"];
    let cases = lite.into_iter().flat_map(|name| [96, 128, 160, 224].map(|side| (name, side)));
    for (name, side) in cases.chain([("resnet50", 96), ("resnet50", 224)]) {
        let folder = tempfile::tempdir().expect("a folder");
        let count = 2 * side * side * 3;
        let mut stream = Seed(3).stream(Domain::Init, 0, 0);
        let pixels: Vec<u8> = (0..count).map(|_| (stream.uniform() * 256.0) as u8).collect();
        let view = TensorView::new(Dtype::U8, vec![2, side, side, 3], &pixels).expect("images");
        let file = safetensors::serialize([("images", view)], None).expect("a file");
        std::fs::write(folder.path().join("images.safetensors"), file).expect("written");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parity/timm_reference.py");
        let mut command = Command::new(python());
        command.env("PYTHONPATH", &packages).args(["-B", script, name, &side.to_string()]).arg(folder.path());
        assert!(command.status().expect("Python starts").success(), "{name} at {side}");
        let bytes = |name: &str| std::fs::read(folder.path().join(name)).expect("timm wrote it");
        let (weights, wanted) = (bytes("weights.safetensors"), read(&bytes("outputs.safetensors")));

        let settings = Settings {
            architecture: name.parse().expect("a network"),
            classes: 1000,
            size: Size { height: side, width: side },
            normalisation: Normalisation { mean: [0.5; 3], deviation: [0.5; 3] },
            ..settings(side)
        };
        let mut engine = Engine::new(settings, Seed(0)).expect("an engine");
        let fresh = engine.snapshot().expect("a snapshot");
        let whole = EngineSnapshot { live: weights.clone(), ema: weights.clone(), ..fresh };
        engine.restore(&whole).expect("timm's weights");
        let got = engine.predict(&pixels, Weights::Ema).expect("outputs");
        for (what, got) in [("logits", &got.logits), ("features", &got.features)] {
            let apart = distance(got, &wanted[what]) / norm(&wanted[what]);
            assert!(apart < 1e-4, "{what} of {name} at {side}: {apart}");
        }
        // The backbone alone, under a classifier of three classes.
        let mut engine = Engine::new(Settings { classes: 3, ..settings }, Seed(0)).expect("an engine");
        engine.start_from(&weights).expect("timm's backbone");
        let got = engine.predict(&pixels, Weights::Live).expect("outputs");
        assert!(distance(&got.features, &wanted["features"]) / norm(&wanted["features"]) < 1e-4, "{name}");
        assert_eq!(got.logits.len(), 6);
    }
}
