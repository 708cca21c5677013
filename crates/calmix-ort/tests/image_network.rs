//! Networks on images: the same bits whatever the threads and the batches, and files that are not theirs are refused.

use std::thread;

use calmix_ort::error::OrtError;
use calmix_ort::image_network::{ImageNetwork, ImageOutputs};
use calmix_ort::session::RunOn;
use calmix_recipe::device::Device;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::network::weights::WeightsProblem;
use calmix_testkit::network_weights::{every_family, pixels, spec, weights};
use calmix_testkit::tier::is_exhaustive;

const CLASSES: usize = 7;
const ROWS: usize = 19;

fn on(threads: usize) -> RunOn {
    RunOn { threads, device: Device::Cpu }
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// The outputs of images that are passed in batches of `images`.
fn in_batches(network: &ImageNetwork, pixels: &[u8], image_bytes: usize, images: usize) -> ImageOutputs {
    let mut all = ImageOutputs::default();
    for batch in pixels.chunks(images * image_bytes) {
        let outputs = network.outputs(batch).unwrap();
        all.logits.extend(outputs.logits);
        all.features.extend(outputs.features);
    }
    all
}

/// Small networks in the usual tier: graphs of large ones take seconds to build without optimisation.
fn networks() -> Vec<ModelSpec> {
    if is_exhaustive() {
        return every_family().to_vec();
    }
    vec![spec("wrn-10-2", 32), spec("tf_efficientnet_lite0", 65)]
}

#[test]
fn bits_depend_on_neither_threads_nor_batches() {
    for model in networks() {
        let file = weights(&model, CLASSES);
        let pixels = pixels(&model, ROWS);
        let wanted =
            ImageNetwork::with_classifier(&model, CLASSES, &file, on(1)).unwrap().outputs(&pixels).unwrap();
        assert_eq!(wanted.logits.len(), ROWS * CLASSES);
        assert_eq!(wanted.features.len(), ROWS * ImageNetwork::width_of(&model));
        for threads in [1, 2, 4] {
            let network = ImageNetwork::with_classifier(&model, CLASSES, &file, on(threads)).unwrap();
            for images in [1, 3, 16, 17, ROWS] {
                let found = in_batches(&network, &pixels, model.image_bytes(), images);
                let what = format!("{}, {threads} threads, batches of {images}", model.network);
                assert_eq!(bits(&found.features), bits(&wanted.features), "features of {what}");
                assert_eq!(bits(&found.logits), bits(&wanted.logits), "logits of {what}");
            }
        }
        let backbone = ImageNetwork::backbone(&model, &file, on(2)).unwrap();
        let found = backbone.outputs(&pixels).unwrap();
        assert_eq!(
            bits(&found.features),
            bits(&wanted.features),
            "a backbone has the features of its network"
        );
        assert!(found.logits.is_empty());
        assert_eq!(backbone.feature_width() * ROWS, found.features.len());
    }
}

#[test]
fn calls_at_the_same_time_have_the_same_bits() {
    let model = spec("wrn-10-1", 32);
    let network = ImageNetwork::with_classifier(&model, CLASSES, &weights(&model, CLASSES), on(2)).unwrap();
    let pixels = pixels(&model, 5);
    let wanted = network.outputs(&pixels).unwrap();
    thread::scope(|scope| {
        let calls: Vec<_> = (0..4).map(|_| scope.spawn(|| network.outputs(&pixels).unwrap())).collect();
        for call in calls {
            assert_eq!(call.join().unwrap(), wanted);
        }
    });
}

#[test]
fn pixels_that_are_not_whole_images_are_refused() {
    let model = spec("wrn-10-1", 32);
    let network = ImageNetwork::with_classifier(&model, CLASSES, &weights(&model, CLASSES), on(1)).unwrap();
    assert_eq!(network.outputs(&[]).unwrap(), ImageOutputs::default());
    for length in [1, model.image_bytes() - 1, model.image_bytes() + 1] {
        let error = network.outputs(&vec![0; length]).unwrap_err();
        assert!(matches!(error, OrtError::Input { .. }), "{error}");
        assert!(error.to_string().contains(&length.to_string()), "{error}");
    }
}

/// Of each refused file the backbone and the whole network.
#[track_caller]
fn problems(model: &ModelSpec, classes: usize, file: &[u8]) -> [WeightsProblem; 2] {
    let whole = ImageNetwork::with_classifier(model, classes, file, on(1)).map(|_| ());
    let backbone = ImageNetwork::backbone(model, file, on(1)).map(|_| ());
    [whole, backbone].map(|refused| match refused {
        Err(OrtError::Weights(problem)) => problem,
        other => panic!("{other:?}"),
    })
}

#[test]
fn files_of_other_weights_are_refused() {
    let model = spec("wrn-10-1", 32);
    let file = weights(&model, CLASSES);
    for length in [0, 7, 8, 100, file.len() / 2, file.len() - 1] {
        let [whole, backbone] = problems(&model, CLASSES, &file[..length]);
        assert!(matches!(whole, WeightsProblem::Format(_)), "{whole}");
        assert!(matches!(backbone, WeightsProblem::Format(_)), "{backbone}");
    }
    let [whole, _] = problems(&spec("tf_efficientnet_lite0", 65), CLASSES, &file);
    assert!(matches!(whole, WeightsProblem::Names { .. }), "{whole}");
    // The same names with other shapes: of a network that would be far larger than its file, before memory is allocated.
    let [whole, backbone] = problems(&spec("wrn-10-64", 32), CLASSES, &file);
    assert!(matches!(whole, WeightsProblem::Length { .. } | WeightsProblem::Names { .. }), "{whole}");
    assert!(matches!(backbone, WeightsProblem::Shape { .. } | WeightsProblem::Names { .. }), "{backbone}");
    let mut damaged = file.clone();
    let middle = damaged.len() / 2;
    damaged[middle..][..100].fill(0xff);
    let [whole, backbone] = problems(&model, CLASSES, &damaged);
    assert!(matches!(whole, WeightsProblem::NotFinite { .. }), "{whole}");
    assert!(matches!(backbone, WeightsProblem::NotFinite { .. }), "{backbone}");
}

#[test]
fn classifier_of_other_classes_is_refused_only_by_the_whole_network() {
    let model = spec("wrn-10-1", 32);
    let file = weights(&model, CLASSES + 1);
    let refused = ImageNetwork::with_classifier(&model, CLASSES, &file, on(1)).unwrap_err();
    assert!(matches!(refused, OrtError::Weights(WeightsProblem::Shape { .. })), "{refused}");
    ImageNetwork::backbone(&model, &file, on(1)).unwrap();
}

#[test]
fn device_without_onnx_runtime_is_refused() {
    let model = spec("wrn-10-1", 32);
    let file = weights(&model, CLASSES);
    for device in [Device::Mps, Device::Cuda(0), Device::Cuda(usize::MAX)] {
        let refused = ImageNetwork::backbone(&model, &file, RunOn { threads: 1, device }).unwrap_err();
        assert!(matches!(refused, OrtError::Device { device: named, .. } if named == device), "{refused}");
    }
}
