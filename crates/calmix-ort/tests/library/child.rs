//! A process that loads ONNX Runtime, runs a network, and writes down what it found.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use calmix_ort::error::OrtError;
use calmix_ort::image_network::ImageNetwork;
use calmix_ort::library;
use calmix_ort::session::RunOn;
use calmix_recipe::device::Device;
use calmix_testkit::network_weights::{pixels, spec, weights};

/// The file that the child writes.
const ANSWER: &str = "CALMIX_ORT_TEST_ANSWER";
const CLASSES: usize = 5;

/// What a process found.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The version that was loaded, or the error.
    pub(crate) first_line: String,
    /// The features of a few images; none without a library.
    pub(crate) features: Vec<f32>,
}

/// Runs the child in `folder` with these environment variables and no other place for the library.
pub(crate) fn child(folder: &Path, variables: &[(&str, &Path)]) -> Answer {
    let answer = folder.join("answer");
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "library::child::answers", "--ignored", "--nocapture"]).current_dir(folder);
    command.env_remove("ORT_DYLIB_PATH").env("CALMIX_CACHE", folder.join("cache")).env(ANSWER, &answer);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(&answer).unwrap();
    let (first_line, rest) = text.split_once('\n').unwrap();
    let features = rest.lines().map(|line| f32::from_bits(line.parse().unwrap())).collect();
    Answer { first_line: first_line.to_owned(), features }
}

fn features() -> Result<Vec<f32>, OrtError> {
    let model = spec("wrn-10-1", 32);
    let file = weights(&model, CLASSES);
    let network =
        ImageNetwork::with_classifier(&model, CLASSES, &file, RunOn { threads: 1, device: Device::Cpu })?;
    Ok(network.outputs(&pixels(&model, 20))?.features)
}

#[test]
#[ignore = "the other tests run it as a process of its own"]
fn answers() {
    // Run by itself, no process waits for its answer.
    let Some(file) = env::var_os(ANSWER) else { return };
    let version = library::version().unwrap_or_else(|error| format!("error: {error}"));
    let features = match features() {
        Ok(features) => features,
        // The error of a library is returned again, not a panic.
        Err(error) => {
            assert_eq!(format!("error: {error}"), version);
            Vec::new()
        }
    };
    let bits: Vec<String> = features.iter().map(|feature| feature.to_bits().to_string()).collect();
    fs::write(file, format!("{version}\n{}", bits.join("\n"))).unwrap();
}
