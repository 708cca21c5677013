#![no_main]

use calmix_onnx::foreign::ForeignModel;
use calmix_onnx::foreign::encoder_file::EncoderFile;
use calmix_onnx::foreign::feature_output::FeatureOutput;
use calmix_onnx::foreign::problem::ForeignProblem;
use calmix_recipe::model_spec::EncoderSpec;
use libfuzzer_sys::fuzz_target;

/// The model of the bytes as an encoder.
fn encoder(bytes: &[u8]) -> Result<Vec<u8>, ForeignProblem> {
    let model = ForeignModel::read(bytes, &mut |_| Ok(vec![1; 1 << 10]))?;
    let side = model.image_input()?.side.map_or(8, |(side, _)| side);
    let output = model.choose_output(None, None)?;
    let FeatureOutput { name, pooling, .. } = output;
    let spec = EncoderSpec { size: side, mean: [0.5; 3], std: [0.25; 3], output: name, pooling };
    Ok(model.encoder(&spec)?.bytes)
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(file) = EncoderFile::read(bytes) {
        assert!(file.side() > 0);
    }
    match encoder(bytes) {
        Ok(written) => assert!(EncoderFile::read(&written).is_ok()),
        Err(problem) => assert!(!problem.to_string().is_empty()),
    }
});
