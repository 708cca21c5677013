//! Each network: logits and all gradients.

use calmix_core::pseudo::Base;
use calmix_engine::engine::Settings;
use calmix_engine::optimiser::Sgd;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::network::{BottleneckStride, FirstBlock};
use calmix_testkit::tier;

use super::case::Case;
use super::peer::Peer;
use crate::methods::plain;
use crate::run::{Rows, settings};

/// What one pass and its gradient may differ by, in f32, relative to each tensor.
const TOLERANCE: f64 = 1e-4;

fn case(name: &'static str, first_block: FirstBlock, side: u32, classes: usize, rows: usize) -> Case {
    let settings = settings(side);
    let settings = Settings {
        model: ModelSpec { network: name.parse().expect("a network"), block: first_block, ..settings.model },
        classes,
        // Without decay the momentum after one step is the gradient.
        optimiser: Sgd { weight_decay: 0.0, ..Sgd::default() },
        ..settings
    };
    let rows = Rows { labelled: rows, unlabelled: 0 };
    Case { name, settings, method: plain(Base::Supervised), rows, steps: 1, at_a_time: 1 }
}

/// A network of each family, for the usual tier; `CALMIX_EXHAUSTIVE=1` compares all.
const FAMILIES: [&str; 3] = ["wrn-16-2", "resnet50", "tf_efficientnet_lite0"];

#[test]
fn logits_and_gradients_of_every_network() {
    calmix_engine::device::set_threads(1);
    let mut peer = Peer::start();
    let wide = [
        ("wrn-10-1", 32, 10, 8),
        ("wrn-10-2", 32, 10, 8),
        ("wrn-16-2", 32, 10, 8),
        ("wrn-28-2", 32, 10, 8),
        ("wrn-28-8", 16, 100, 4),
        ("wrn-37-2", 96, 10, 4),
    ];
    let wide = wide.into_iter().flat_map(|(name, side, classes, rows)| {
        [FirstBlock::Google, FirstBlock::Torch].map(|first| case(name, first, side, classes, rows))
    });
    let others =
        [("resnet50", 64, 1000), ("tf_efficientnet_lite0", 64, 10), ("tf_efficientnet_lite2", 45, 10)];
    let others = others.map(|(name, side, classes)| case(name, FirstBlock::Google, side, classes, 4));
    let mut keras = case("resnet50", FirstBlock::Google, 64, 10, 4);
    keras.settings.model.stride = BottleneckStride::First;
    let cases: Vec<Case> = wide.chain(others).chain([keras]).collect();
    assert!(FAMILIES.iter().all(|name| cases.iter().any(|case| case.name == *name)));
    for case in cases.iter().filter(|case| tier::is_exhaustive() || FAMILIES.contains(&case.name)) {
        let apart = case.compare(&mut peer);
        assert!(apart.largest() < TOLERANCE, "{} {:?}: {apart}", case.name, case.settings.model.block);
    }
}
