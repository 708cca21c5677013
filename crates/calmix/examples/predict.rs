//! Predicts images with the model of a finished run: `cargo run --release -p calmix --example predict RUN IMAGE…`
//!
//! Prints the label, its calibrated confidence, the prediction set and whether the model abstains. Sets and abstaining need
//! labels that were held out from training, or given later with `calmix calibrate`.
#![allow(clippy::print_stdout)]

use std::error::Error;

use calmix::Model;
use calmix::formats::decode::{DecodeLimits, decode};
use calmix::model::ModelOptions;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let run = arguments.next().ok_or("usage: predict RUN IMAGE…")?;
    let options = ModelOptions { coverage: 0.9, precision: 0.95, ..ModelOptions::default() };
    let model = Model::load_with(run, &options)?;
    let classes = model.classes();
    for file in arguments {
        let bytes = std::fs::read(&file).map_err(|error| format!("{file}: {error}"))?;
        let image = decode(&bytes, &DecodeLimits::default()).map_err(|error| format!("{file}: {error}"))?;
        for prediction in model.predict(&[image])? {
            let label = &classes[prediction.label];
            let percent = 100.0 * prediction.confidence;
            let set = prediction.set.map(|set| set.iter().map(|class| &*classes[*class as usize]).collect());
            let set = set.map_or("unknown".to_owned(), |names: Vec<&str>| names.join(", "));
            let abstain = match prediction.abstain {
                Some(true) => "yes",
                Some(false) => "no",
                None => "unknown",
            };
            println!("{file}: {label}, confidence {percent:.1}%, prediction set: {set}, abstain: {abstain}");
        }
    }
    Ok(())
}
