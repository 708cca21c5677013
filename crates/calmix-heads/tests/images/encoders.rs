//! Encoders of the architectures that people use, with random weights: their features are PyTorch's, whatever the threads and the
//! batches. `tests/runtime/encoders.py` writes them.

use std::path::Path;
use std::{env, fs};

use calmix_lifecycle::pretrained::EncoderFile;
use calmix_ort::image_network::ImageNetwork;
use calmix_ort::session::RunOn;
use calmix_recipe::device::Device;
use calmix_recipe::model_spec::EncoderSpec;
use calmix_run::pretrained::weights_folder::WeightsFolder;
use calmix_testkit::tier::skipped;

/// The folder of the encoders.
const FOLDER: &str = "CALMIX_ENCODERS";
const IMAGES: usize = 5;

/// The largest difference of features, relative to the largest one.
const NEAR: f32 = 1e-4;

#[test]
fn encoders_have_the_features_of_pytorch() {
    let Some(folder) = env::var_os(FOLDER) else {
        return skipped("CALMIX_ENCODERS does not name the folder that tests/runtime/encoders.py writes");
    };
    let weights = WeightsFolder::new(&folder);
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let place = entry.unwrap().path();
        let Some(model) = place.to_str().and_then(|named| weights.find_encoder(named)) else { continue };
        check(&place, &model);
        count += 1;
    }
    assert!(count > 0, "no encoders");
}

fn check(place: &Path, model: &Path) {
    let file = EncoderFile::read(model).unwrap();
    let choice = file.choose(None, None).unwrap();
    let config = file.config.as_ref().map(|(_, config)| config.clone()).unwrap();
    let spec = EncoderSpec {
        size: choice.side.or(config.size).unwrap(),
        mean: config.mean.unwrap(),
        std: config.std.unwrap(),
        output: choice.output.clone(),
        pooling: choice.pooling,
    };
    let graph = file.graph(&spec).unwrap();
    let images = array(&place.join("images.npy"));
    assert_eq!(images.len(), IMAGES * spec.image_bytes());
    let wanted = array(&place.join(format!("{}.npy", choice.output)));
    let wanted: Vec<f32> = wanted.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    let run = |threads, batch: usize| {
        let encoder = ImageNetwork::encoder(&spec, &graph, RunOn { threads, device: Device::Cpu }).unwrap();
        let batches = images.chunks(batch * spec.image_bytes());
        batches.flat_map(|batch| encoder.outputs(batch).unwrap().features).collect::<Vec<f32>>()
    };
    let found = run(1, IMAGES);
    assert_eq!(found.len(), wanted.len(), "{}", place.display());
    let largest = wanted.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
    let differences = found.iter().zip(&wanted).map(|(found, wanted)| (found - wanted).abs());
    let difference = differences.fold(0.0, f32::max) / largest;
    println!("{}: {difference:e} of the largest of {} features", place.display(), found.len() / IMAGES);
    assert!(difference <= NEAR, "{}: {difference}", place.display());
    let bits = |numbers: &[f32]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
    for (threads, batch) in [(1, 1), (1, 2), (2, 3), (2, IMAGES), (4, 1)] {
        let same = bits(&run(threads, batch)) == bits(&found);
        assert!(same, "{}: {threads} threads, batches of {batch}", place.display());
    }
}

/// The data of a `.npy` file.
fn array(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[10 + header..].to_vec()
}
